"""A standalone program: the kernel, how to launch it, a harness that checks and times it, provenance and figures."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from cake_tui import figures
from cake_tui.errors import FOUND_WRONG, UserError
from cake_tui.exporters import Bundle, _provenance
from cake_tui.exporters._reference import declarations, reference_text
from cake_tui.model.device import Target
from cake_tui.model.lowered import Lowered

BEGIN = "// ---- kernel ----\n"
END = "// ---- end of kernel ----\n"
ELEMENTS, CHECK = (Path(__file__).with_name(name) for name in ("_elements.c", "_check.c"))
WIDTH = 117  # of what people read, behind the slashes


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
        plan = lowered.plans[-1]
        head = self._head(bundle)
        parts = [
            BEGIN, source, END, "\n", "#ifndef CAKE_TUI_NO_MAIN\n", _forgotten(source), self.includes,
            _times(bundle), declarations(bundle.problem, plan), self.launches(bundle),
            ELEMENTS.read_text(encoding="utf-8"), reference_text(bundle.problem, plan),
            CHECK.read_text(encoding="utf-8"), self.harness.read_text(encoding="utf-8"), "#endif\n",
        ]  # fmt: skip
        body = "\n" + "".join(parts)
        return head + _provenance.wrapped(bundle.provenance, head, body) + body

    def read(self, text: str) -> Bundle:
        """Return what the file says of itself with the kernel's text as it stands there now.

        Raises UserError (exit 7) where the kernel, or the text around it, is not what the file states the hash of.
        """
        plain, whole = _provenance.read(text)
        begin, end = text.find(BEGIN), text.rfind(END)
        if begin < 0 or end < begin:
            raise UserError("not an export of cake-tui: there is no kernel in it")
        try:
            stated = plain.pop("source_sha256")
            plain["lowered"]["source"] = text[begin + len(BEGIN) : end]
            bundle = msgspec.convert(plain, Bundle)
        except (ValueError, KeyError, TypeError, msgspec.ValidationError) as error:
            raise UserError(f"the export's provenance is damaged: {error}") from None
        if bundle.lowered.sha256 != stated:
            raise UserError(
                "the kernel in the file is not the one it was exported with: "
                f"{figures.digest(bundle.lowered.sha256)}, stated {str(stated)[:12]}",
                FOUND_WRONG,
            )
        if not whole:
            raise UserError(
                "the text around the kernel was changed since it was exported: its figures or its harness are not "
                "those that cake-tui wrote; export it again",
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
        lines.append(figures.digest(bundle.lowered.sha256))
        if bundle.time_us:
            rate = f", {figures.throughput(bundle.throughput_tflops)}" if bundle.throughput_tflops else ""
            threads = f", {bundle.device.cores} threads" if self.target == "c" else ""
            where = f"{bundle.device.name}{threads}"
            lines.append(f"measured: {figures.time(bundle.time_us)}{rate} on {where}")
        if bundle.over_baseline:
            lines.append(f"against the naive baseline: {figures.ratio(bundle.over_baseline)} as fast")
        for name, peer in sorted(bundle.peers.items()):
            threads = f", {peer.threads} threads" if peer.threads else ""
            beside = f"{figures.ratio(peer.ratio, 4)} as fast, timed side by side"
            lines.append(f"against {name} {peer.version}{threads}: {beside}")
        if bundle.pair_noise:
            lines.append(f"pair noise of the session: {figures.percent(bundle.pair_noise, 2)}")
        command = " ".join(self.command(bundle, (self.compiler,), f"FILE{self.suffix}", "bench"))
        # A backslash at a line's end would join it with the next one.
        told = [piece for line in lines for piece in _pieces(line.replace("\\", "/"))]
        # What is to be pasted stays on one line.
        told += [f"run: {command} && ./bench{self.words}", f"prove: cake-tui verify FILE{self.suffix}"]
        return "".join(f"// {piece}\n" for piece in told)


def _times(bundle: Bundle) -> str:
    """What the harness holds its own time against; zeros where there is nothing."""
    stated, slow = (bundle.time_us, bundle.slow_us) if bundle.slow_us else (0.0, 0.0)
    return f"#define CAKE_STATED_US {stated:.6g}\n#define CAKE_SLOW_US {slow:.6g}\n"


def _forgotten(source: str) -> str:
    """What ends the kernel's macros: a knob called `rows` is not meant for the harness."""
    names = dict.fromkeys(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", source, re.MULTILINE))
    return "".join(f"#undef {name}\n" for name in names)


def _pieces(line: str) -> list[str]:
    """A line for people in as many as it takes, those behind the first set in."""
    inset = "  " if line.startswith("  ") else ""
    return textwrap.wrap(
        " ".join(line.split()), WIDTH, initial_indent=inset, subsequent_indent=f"{inset}    ", break_on_hyphens=False
    ) or [""]
