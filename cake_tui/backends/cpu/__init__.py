"""The CPU: C kernels, one task of one core, over a pool of threads beside the kernel."""

from __future__ import annotations

from pathlib import Path

from cake_tui.backends import Backend, Compiler, Host
from cake_tui.backends._rates import measure_rates
from cake_tui.backends.cpu.compilers import find_compiler, kernel_command, test_compile, version
from cake_tui.backends.cpu.device import local_device
from cake_tui.backends.cpu.facts import read_facts
from cake_tui.model.device import Device, Target
from cake_tui.model.facts import StaticFacts
from cake_tui.model.jobs import BuildJob, BuildReply


class CpuBackend:
    """Compiles with the machine's C compiler and runs in an evaluator process."""

    name = "cpu"
    target: Target = "c"

    def devices(self) -> tuple[Device, ...]:
        """Return this machine's processor; raises UserError (ENVIRONMENT) where there is no compiler."""
        find_compiler()
        return (local_device(),)

    def probe(self, device: Device) -> Compiler:
        """Compile a trifle for the device; raises UserError (ENVIRONMENT) with compiler, version and cure."""
        command = find_compiler()
        found = Compiler(command, version(command))
        test_compile(command, device)
        return found

    def measured(self, device: Device) -> Device:
        """Return the device with its peak rates as all cores reach them now."""
        return measure_rates("cake_tui.backends.cpu._rates", device)

    def compile_command(self, job: BuildJob, device: Device, source: Path, output: Path) -> tuple[str, ...]:
        """Return the compiler's command; both flavours are compiled alike."""
        return kernel_command(find_compiler(), job.lowered.arch, job.lowered.options, source, output)

    def read_facts(self, binary: Path, log: str) -> StaticFacts:
        """Read assembly and vector report beside `binary`."""
        return read_facts(binary, log, version(find_compiler()))

    def builds_beside_timing(self, device: Device) -> bool:
        """A compiler would take the cores that are timed."""
        return False

    def build_in_process(self, job: BuildJob, device: Device) -> BuildReply | None:
        """C is never built without a compiler."""
        return None

    def lost(self, device: Device) -> str | None:
        """A processor that is gone asks nothing."""
        return None

    def host(self, store: Path, device: Device) -> Host:
        """Make the evaluator's side; imports numpy and compiles the runtime where it is not cached."""
        from cake_tui.backends.cpu.host import CpuHost

        return CpuHost(store, device)


PLUGIN: Backend = CpuBackend()
