"""The simulated backend: response surfaces in place of a machine, for tests and demos; labelled wherever it shows."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from cake_tui.backends import Backend, Compiler, Host
from cake_tui.backends.simulated import options as opt
from cake_tui.backends.simulated.compile import stand_in
from cake_tui.backends.simulated.host import SimulatedHost, schedule_of
from cake_tui.backends.simulated.surfaces import SURFACES
from cake_tui.errors import ENVIRONMENT, UserError
from cake_tui.model.device import Device, Target
from cake_tui.model.facts import StaticFacts
from cake_tui.model.jobs import BuildJob, BuildReply, Built, NotBuilt

COMPILER = "simulated compiler 1"


class SimulatedBackend:
    """One device a surface; a device's UUID carries its options (see `options`)."""

    name = "simulated"
    target: Target = "c"

    def devices(self) -> tuple[Device, ...]:
        """List one device for each surface, with default options."""
        return tuple(self.device(name) for name in SURFACES)

    def device(self, argument: str) -> Device:
        """Make the device of ``SURFACE,NAME=VALUE,...``, with or without the prefix of a UUID, or of an index.

        Raises UserError naming what is allowed.
        """
        if argument.isdecimal() and int(argument) < len(SURFACES):
            argument = list(SURFACES)[int(argument)]
        options = opt.parse(argument.removeprefix(opt.PREFIX))
        return Device(
            kind="simulated",
            target=self.target,
            name=f'simulated surface "{options.surface}" (no real times)',
            uuid=options.uuid,
            arch="x86-64-v4",
            cores=2,
            clock_mhz=3000.0,
            peak_gflops=384.0,
            memory_gbps=20.0,
            vector_bytes=64,
            vector_registers=32,
            l1_bytes=32 * 1024,
            l2_bytes=1024 * 1024,
            l3_bytes=32 * 1024 * 1024,
        )

    def probe(self, device: Device) -> Compiler:
        """Say that nothing is compiled; raises UserError (ENVIRONMENT) where the options ask for a broken machine."""
        if opt.parse_uuid(device.uuid).probe < 1:
            raise UserError(
                f'{COMPILER}: the test compile for {device.name} failed, as "probe=0" of its options asks for; '
                "leave it out",
                ENVIRONMENT,
            )
        return Compiler(command=_command(), version=COMPILER)

    def measured(self, device: Device) -> Device:
        """Return the device as it is: its rates are made up."""
        return device

    def compile_command(self, job: BuildJob, device: Device, source: Path, output: Path) -> tuple[str, ...]:
        """Return the simulated compiler's command: a real process that may be slow, fail, talk or hang."""
        options = opt.parse_uuid(device.uuid)
        schedule = schedule_of(job.lowered)
        # A schedule whose run hangs or crashes compiles well.
        ending = "BuildFailed" if options.ending(schedule) == "BuildFailed" else "Measured"
        told = "TimedOut" if options.compiler_hangs(schedule) else ending
        size = f"{options.log_bytes:.0f}"
        return (*_command(), f"{options.compile_s:g}", size, told, source.name, output.name)

    def read_facts(self, binary: Path, log: str) -> StaticFacts:
        """Return what is known of a binary that is none."""
        return StaticFacts(compiler=COMPILER)

    def builds_beside_timing(self, device: Device) -> bool:
        """Nothing is timed; it matters where the options ask for a compiler that takes time."""
        return opt.parse_uuid(device.uuid).needs_process

    def build_in_process(self, job: BuildJob, device: Device) -> BuildReply | None:
        """Answer at once, unless the options ask for a compiler that takes time, hangs or talks."""
        options = opt.parse_uuid(device.uuid)
        if options.needs_process:
            return None
        if options.ending(schedule_of(job.lowered)) == "BuildFailed":
            reason = "simulated: the surface lets this schedule fail to build"
            log = f"{job.flavour}.c:1:1: error: {reason}\n"
            return NotBuilt(reason, seconds=0.0, log=log, log_bytes=len(log), command=_command())
        identity = f"{job.flavour} {job.lowered.sha256}".encode()
        return Built(
            binary_sha256=hashlib.sha256(stand_in(identity)).hexdigest(),
            seconds=0.0,
            facts=StaticFacts(compiler=COMPILER),
            command=_command(),
        )

    def lost(self, device: Device) -> str | None:
        """It is nowhere, and cannot go."""
        return None

    def host(self, store: Path, device: Device) -> Host:
        """Make the evaluator's side; the store is not read."""
        return SimulatedHost(opt.parse_uuid(device.uuid))


def _command() -> tuple[str, ...]:
    # By its path, isolated: it needs nothing but the standard library, whatever the working folder.
    return (sys.executable, "-I", "-S", str(Path(__file__).with_name("compile.py")))


PLUGIN: Backend = SimulatedBackend()
