"""Backends compile, run, time and profile on one kind of device. A backend is a folder with `PLUGIN`.

The engine's side (`Backend`) is light: probing devices and naming compiler commands import nothing heavy.
The evaluator's side (`Host`) lives in a process that may die; `_evaluator` hosts one and imports none by name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import msgspec

from cake_tui.model.device import Device, Target
from cake_tui.model.facts import StaticFacts
from cake_tui.model.jobs import BuildJob, BuildReply, EvaluatorJob, EvaluatorReply, Inspect, Inspected


class Compiler(msgspec.Struct, frozen=True):
    """What the test compile found: the command's first words and the compiler's own version line."""

    command: tuple[str, ...]
    version: str


class Host(Protocol):
    """What an evaluator process runs: one job at a time, to its end."""

    def handle(self, job: EvaluatorJob) -> EvaluatorReply:
        """Do the job; a candidate's failure is a reply, an exception is a bug and ends the evaluator."""

    def close(self) -> None:
        """End child processes and give memory back."""


class Inspector(Protocol):
    """Runs kernels under a tool; a backend that has one says so in its attribute `inspector`."""

    def command(self, job: Inspect, store: Path, device: Device, folder: Path) -> tuple[str, ...]:
        """Write what the tool needs into `folder` and return its command.

        Raises UserError (ENVIRONMENT), "what; cure", where the tool is not there.
        """

    def read(self, job: Inspect, folder: Path, output: str, *, timed_out: bool) -> Inspected:
        """Read what the ended tool left in `folder` and printed; never raises for what it left half done."""


class Backend(Protocol):
    """What `PLUGIN` is."""

    name: str
    target: Target

    def devices(self) -> tuple[Device, ...]:
        """List the devices, best first; cheap. Raises UserError (ENVIRONMENT) naming what is missing."""

    def probe(self, device: Device) -> Compiler:
        """Compile a trifle for the device. Raises UserError (ENVIRONMENT) with compiler, version and cure."""

    def measured(self, device: Device) -> Device:
        """Return the device with its peak rates measured, in a second or so and a process of its own.

        Raises UserError (ENVIRONMENT) where that fails.
        """

    def compile_command(self, job: BuildJob, device: Device, source: Path, output: Path) -> tuple[str, ...]:
        """Return the command that compiles `source` into `output`; both paths are in the working folder."""

    def read_facts(self, binary: Path, log: str) -> StaticFacts:
        """Read what compiler report and assembly (files beside `binary`) say."""

    def build_in_process(self, job: BuildJob, device: Device) -> BuildReply | None:
        """Answer a build without a compiler, or None where `compile_command` is to be run."""

    def builds_beside_timing(self, device: Device) -> bool:
        """Say whether compilers at work leave alone what is timed on the device, and take time worth hiding."""

    def lost(self, device: Device) -> str | None:
        """Say why nobody can use the device any more, None where it answers; asked when an evaluator has died."""

    def host(self, store: Path, device: Device) -> Host:
        """Make the evaluator's side; called in the evaluator process alone, imports the heavy things."""
