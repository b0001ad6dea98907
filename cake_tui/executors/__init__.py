"""Executors say where jobs run. One file a place; `PLUGIN` makes the executor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from cake_tui.model.device import Device
from cake_tui.model.jobs import BuildJob, BuildReply, EvaluatorJob, EvaluatorReply, Inspect, Inspected

Wait = Callable[[], None]
"""Called at least every 50 ms during long waits; what it raises ends the work in flight and travels on."""

OnFull = Callable[[Path, int, OSError], None]
"""Called where so many bytes of a file found no space; returns when it may be tried again."""


class Executor(Protocol):
    """Builds and evaluates; JSON-encodable values in and out, binaries by content hash, no host paths."""

    def build(self, jobs: Sequence[BuildJob], wait: Wait | None = None) -> Iterator[tuple[int, BuildReply]]:
        """Compile all in parallel and yield (position in `jobs`, reply) as each ends."""

    @property
    def builds_beside_timing(self) -> bool:
        """Whether what is timed does not notice compilers at work, so that builds may go on beside it."""

    def build_ahead(self, jobs: Sequence[BuildJob]) -> None:
        """Have compilers work on these beside what is evaluated next; `build` of an equal job takes its reply over."""

    def evaluate(self, job: EvaluatorJob, timeout_s: float, wait: Wait | None = None) -> EvaluatorReply:
        """Run one job on the evaluator; `Lost` when it died, hung or took too much memory, and was replaced."""

    @property
    def has_tools(self) -> bool:
        """Whether the backend has a profiler and a memory checker, installed or not."""

    def inspect(self, job: Inspect, timeout_s: float, wait: Wait | None = None) -> Inspected:
        """Run kernels under a tool in a process of its own, while nothing else uses the device."""

    def wait_for_room(self, on_full: OnFull) -> None:
        """Have `on_full` wait where a file of the store finds no space, instead of raising."""

    def close(self) -> None:
        """End every process that this executor started."""


class ExecutorFactory(Protocol):
    """What `PLUGIN` is."""

    def __call__(self, backend_name: str, store: Path, device: Device) -> Executor:
        """Return an executor whose binaries live in the folder `store`."""
