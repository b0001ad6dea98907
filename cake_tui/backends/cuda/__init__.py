"""NVIDIA GPUs: CUDA kernels built by NVRTC or nvcc, run by an evaluator that owns the context."""

from __future__ import annotations

from pathlib import Path

import msgspec

from cake_tui.backends import Backend, Compiler, Host, Inspector
from cake_tui.backends._rates import measure_rates
from cake_tui.backends.cuda import static
from cake_tui.backends.cuda.compilers import find_compiler, kernel_command, test_compile, version
from cake_tui.backends.cuda.devices import local_devices, lost
from cake_tui.model.device import Device, Target
from cake_tui.model.facts import StaticFacts
from cake_tui.model.jobs import BuildJob, BuildReply


class CudaBackend:
    """Compiles beside the GPU and runs in an evaluator process; the engine itself never opens the device."""

    name = "cuda"
    target: Target = "cuda"

    def devices(self) -> tuple[Device, ...]:
        """Return the visible GPUs; raises UserError (ENVIRONMENT) where driver, GPU or compiler is missing."""
        found = local_devices()
        find_compiler()
        return found

    def probe(self, device: Device) -> Compiler:
        """Compile a trifle for the device; raises UserError (ENVIRONMENT) with compiler, version and cure."""
        command = find_compiler()
        found = Compiler(command, version(command))
        test_compile(command, device.arch)
        return found

    def measured(self, device: Device) -> Device:
        """Return the device with its multiply-add and copy rates as it reaches them now."""
        return measure_rates("cake_tui.backends.cuda._rates", device)

    def compile_command(self, job: BuildJob, device: Device, source: Path, output: Path) -> tuple[str, ...]:
        """Return the compiler's command; the full build is disassembled too, where that is possible."""
        return kernel_command(
            find_compiler(), job.lowered.arch, job.lowered.options, source, output, disassemble=job.flavour == "full"
        )

    def read_facts(self, binary: Path, log: str) -> StaticFacts:
        """Read ptxas' report and, where there is one, the text of the instructions beside `binary`."""
        listing = binary.with_suffix(".sass")
        sass = listing.read_text(encoding="utf-8", errors="replace") if listing.is_file() else ""
        facts = static.with_code(static.from_ptxas(log), binary, sass)
        return msgspec.structs.replace(facts, compiler=version(find_compiler()))

    def builds_beside_timing(self, device: Device) -> bool:
        """Compilers work on the processor, kernels on the GPU."""
        return True

    def build_in_process(self, job: BuildJob, device: Device) -> BuildReply | None:
        """CUDA is never built without a compiler."""
        return None

    @property
    def inspector(self) -> Inspector:
        """The profiler and the memory checker."""
        from cake_tui.backends.cuda.inspector import INSPECTOR

        return INSPECTOR

    def lost(self, device: Device) -> str | None:
        """Have a new process make a context on the device: an error that stays in one process says nothing of it."""
        return lost(device.uuid)

    def host(self, store: Path, device: Device) -> Host:
        """Make the evaluator's side; imports CuPy and creates the context."""
        from cake_tui.backends.cuda.host import CudaHost

        return CudaHost(store, device)


PLUGIN: Backend = CudaBackend()
