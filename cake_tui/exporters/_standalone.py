"""A standalone program: the kernel, how to launch it, a harness that checks and times it, provenance and figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from cake_tui import figures
from cake_tui.errors import FOUND_WRONG, UserError
from cake_tui.exporters import Bundle
from cake_tui.exporters._reference import declarations, reference_text
from cake_tui.model.device import Target
from cake_tui.model.lowered import Lowered

MARK = "// cake-tui export 1 "
BEGIN = "// ---- kernel ----\n"
END = "// ---- end of kernel ----\n"
CHECK = Path(__file__).with_name("_check.c")


class Standalone(msgspec.Struct, frozen=True):
    """One language of the format; `Exporter` in all but what differs between targets."""

    target: Target
    suffix: str
    harness: Path
    launches: Callable[[Bundle], str]  # the launch plan in the harness's words
    includes: str  # what the declarations need
    compiler: str  # what people call it
    flags: Callable[[Lowered], tuple[str, ...]]
    links: tuple[str, ...] = ()  # libraries, behind the file
    words: str = ""  # what the program may be told

    def write(self, bundle: Bundle) -> str:
        """Return the file's text; raises UserError for a kernel of another target."""
        lowered = bundle.lowered
        if lowered.target != self.target:
            other = f"allowed: a {self.target} kernel"
            raise UserError(f"--format {self.target}: candidate {bundle.candidate} is for {lowered.target}, {other}")
        source = lowered.source if lowered.source.endswith("\n") else lowered.source + "\n"
        mark = MARK + json.dumps(bundle.provenance, sort_keys=True, ensure_ascii=True)
        plan = lowered.plans[-1]
        parts = [
            self._head(bundle), mark + "\n\n", BEGIN, source, END, "\n", "#ifndef CAKE_TUI_NO_MAIN\n", self.includes,
            declarations(bundle.problem, plan), self.launches(bundle), reference_text(bundle.problem, plan),
            CHECK.read_text(encoding="utf-8"), self.harness.read_text(encoding="utf-8"), "#endif\n",
        ]  # fmt: skip
        return "".join(parts)

    def read(self, text: str) -> Bundle:
        """Return what the file says of itself with the kernel's text as it stands there now.

        Raises UserError (exit 7) where the kernel is not the one whose hash the file states.
        """
        mark = next((line for line in text.splitlines() if line.startswith(MARK)), None)
        begin, end = text.find(BEGIN), text.find(END)
        if mark is None or begin < 0 or end < begin:
            raise UserError(f'not an export of cake-tui: no line that begins with "{MARK.strip()}", or no kernel in it')
        try:
            plain = json.loads(mark[len(MARK) :])
            stated = plain.pop("source_sha256")
            plain["lowered"]["source"] = text[begin + len(BEGIN) : end]
            bundle = msgspec.convert(plain, Bundle)
        except (ValueError, KeyError, TypeError, msgspec.ValidationError) as error:
            raise UserError(f"the export's provenance line is damaged: {error}") from None
        if bundle.lowered.sha256 != stated:
            raise UserError(
                f"the kernel in the file is not the one it was exported with: sha256 {bundle.lowered.sha256[:12]}, "
                f"stated {stated[:12]}",
                FOUND_WRONG,
            )
        return bundle

    def command(self, bundle: Bundle, compiler: Sequence[str], source: str, program: str) -> tuple[str, ...]:
        """Say how a compiler makes a program of the file."""
        return (*compiler, *self.flags(bundle.lowered), source, "-o", program, *self.links)

    def _head(self, bundle: Bundle) -> str:
        """Comment lines for people: what it is, how fast, how to run it."""
        shape = bundle.lowered.plans[-1].shape.text
        lines = [f"{bundle.problem.kernel}: {bundle.problem.value or 'a user kernel'}, {shape}"]
        if bundle.simulated:
            lines.append("SIMULATED: the figures below come from a response surface, not from a machine.")
        lines.append(f"session {bundle.session}, candidate {bundle.candidate}: {bundle.schedule}")
        lines += [f"  {step}" for step in bundle.lineage]
        if bundle.time_us:
            rate = f", {figures.throughput(bundle.throughput_tflops)}" if bundle.throughput_tflops else ""
            threads = f", {bundle.device.cores} threads" if self.target == "c" else ""
            where = f"{bundle.device.name}{threads}"
            lines.append(f"measured: {figures.time(bundle.time_us)}{rate} on {where}")
        if bundle.baseline_us and bundle.time_us:
            lines.append(f"against the naive baseline: {figures.ratio(bundle.baseline_us / bundle.time_us)} as fast")
        for name, peer in sorted(bundle.peers.items()):
            threads = f", {peer.threads} threads" if peer.threads else ""
            beside = f"{figures.ratio(peer.ratio, 4)} as fast, timed side by side"
            lines.append(f"against {name} {peer.version}{threads}: {beside}")
        if bundle.pair_noise:
            lines.append(f"pair noise of the session: {figures.percent(bundle.pair_noise, 2)}")
        command = " ".join(self.command(bundle, (self.compiler,), f"FILE{self.suffix}", "bench"))
        lines += [f"run: {command} && ./bench{self.words}", f"prove: cake-tui verify FILE{self.suffix}"]
        return "".join(f"// {line}\n".replace("\r", " ") for line in lines)
