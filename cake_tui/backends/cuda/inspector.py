"""The tools of this backend: Nsight Compute counts, compute-sanitizer looks for bad accesses and races."""

from __future__ import annotations

from pathlib import Path

from cake_tui.backends import Inspector
from cake_tui.backends.cuda.ncu import Ncu
from cake_tui.backends.cuda.sanitizer import Sanitizer
from cake_tui.model.device import Device
from cake_tui.model.jobs import Inspect, Inspected, Tool


class Tools:
    """Hands each job to its tool."""

    def __init__(self) -> None:
        checker = Sanitizer()
        self._tools: dict[Tool, Inspector] = {"ncu": Ncu(), "memcheck": checker, "racecheck": checker}

    def command(self, job: Inspect, store: Path, device: Device, folder: Path) -> tuple[str, ...]:
        """Return the tool's command; raises UserError (ENVIRONMENT) where it is not there."""
        return self._tools[job.tool].command(job, store, device, folder)

    def read(self, job: Inspect, folder: Path, output: str, *, timed_out: bool) -> Inspected:
        """Read what the tool left."""
        return self._tools[job.tool].read(job, folder, output, timed_out=timed_out)


INSPECTOR: Inspector = Tools()
