"""Exporters write a session's best kernel in the form that somebody else takes. One format a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from cake_tui.model.device import Device
from cake_tui.model.lowered import Lowered
from cake_tui.model.problem import Problem
from cake_tui.model.row import Peer


class Bundle(msgspec.Struct, frozen=True):
    """All that an export may say of one candidate; figures are measured or None."""

    session: str
    candidate: int
    problem: Problem
    device: Device
    lowered: Lowered
    schedule: str  # as people read it
    lineage: tuple[str, ...]  # moves from the baseline to here, oldest first
    time_us: float | None
    throughput_tflops: float | None
    pair_noise: float | None
    max_abs_err: float | None
    over_baseline: float | None = None  # times as fast as candidate 0, by pairs timed side by side
    peers: dict[str, Peer] = {}
    versions: dict[str, str] = {}
    exported_at: str = ""  # UTC
    simulated: bool = False

    @property
    def provenance(self) -> dict[str, Any]:
        """What a reader needs to run and judge the kernel again, JSON-encodable; the source is left out."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        plain["lowered"].pop("source")
        plain["source_sha256"] = self.lowered.sha256
        return plain

    @property
    def slow_us(self) -> float | None:
        """A harness's time over this is worth a word: over 1.25 times the stated one, and over ten times its noise.

        None where they are no times of the same thing: simulated ones, and those of several shapes together.
        """
        if self.time_us is None or self.simulated or (len(self.problem.shapes) > 1 and self.problem.ranking != "last"):
            return None
        return self.time_us * max(1.25, 1 + 10 * (self.pair_noise or 0.0))


class Exporter(Protocol):
    """What `PLUGIN` is."""

    @property
    def suffix(self) -> str:
        """Of the file, with its dot."""

    def command(self, bundle: Bundle, compiler: Sequence[str], source: str, program: str) -> tuple[str, ...] | None:
        """Say how a compiler makes a program of the file; None for a format that is no program."""

    def write(self, bundle: Bundle) -> str:
        """Return the file's text; raises UserError where the bundle does not fit the format."""

    def read(self, text: str) -> Bundle:
        """Inverse of `write`, for `verify`; raises UserError for a text that is not one of ours."""
