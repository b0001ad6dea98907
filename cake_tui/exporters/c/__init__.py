"""A standalone C file: the kernel, how to launch it, a harness that checks and times it, provenance and figures."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from cake_tui import figures
from cake_tui.errors import FOUND_WRONG, UserError
from cake_tui.exporters import Bundle, Exporter
from cake_tui.exporters.c._reference import reference_text
from cake_tui.model.lowered import LaunchPlan

MARK = "// cake-tui export 1 "
BEGIN = "// ---- kernel ----\n"
END = "// ---- end of kernel ----\n"
HARNESS = Path(__file__).with_name("harness.c")


class StandaloneC:
    """``cc <options> FILE -o bench -lpthread -lm && ./bench`` checks and times the kernel anywhere."""

    suffix = ".c"

    def write(self, bundle: Bundle) -> str:
        """Return the file's text; raises UserError for a kernel of another target."""
        lowered = bundle.lowered
        if lowered.target != "c":
            raise UserError(f"--format c: candidate {bundle.candidate} is for {lowered.target}, allowed: a c kernel")
        source = lowered.source if lowered.source.endswith("\n") else lowered.source + "\n"
        mark = MARK + json.dumps(bundle.provenance, sort_keys=True, ensure_ascii=True)
        parts = [
            _head(bundle), mark + "\n\n", BEGIN, source, END, "\n",
            "#ifndef CAKE_TUI_NO_MAIN\n#include <stddef.h>\n", _problem_text(bundle),
            HARNESS.read_text(encoding="utf-8"), "#endif\n",
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


def _head(bundle: Bundle) -> str:
    """Comment lines for people: what it is, how fast, how to run it."""
    shape = bundle.lowered.plans[-1].shape.text
    lines = [f"{bundle.problem.kernel}: {bundle.problem.value or 'a user kernel'}, {shape}"]
    if bundle.simulated:
        lines.append("SIMULATED: the figures below come from a response surface, not from a machine.")
    lines.append(f"session {bundle.session}, candidate {bundle.candidate}: {bundle.schedule}")
    lines += [f"  {step}" for step in bundle.lineage]
    if bundle.time_us:
        rate = f", {figures.throughput(bundle.throughput_tflops)}" if bundle.throughput_tflops else ""
        where = f"{bundle.device.name}, {bundle.device.cores} threads"
        lines.append(f"measured: {figures.time(bundle.time_us)}{rate} on {where}")
    if bundle.baseline_us and bundle.time_us:
        lines.append(f"against the naive baseline: {figures.ratio(bundle.baseline_us / bundle.time_us)} as fast")
    for name, peer in sorted(bundle.peers.items()):
        threads = f", {peer.threads} threads" if peer.threads else ""
        beside = f"{figures.ratio(peer.ratio, 4)} as fast, timed side by side"
        lines.append(f"against {name} {peer.version}{threads}: {beside}")
    if bundle.pair_noise:
        lines.append(f"pair noise of the session: {figures.percent(bundle.pair_noise, 2)}")
    options = " ".join(bundle.lowered.options)
    lines.append(f"run: cc {options} FILE.c -o bench -lpthread -lm && ./bench      (threads: ./bench 4)")
    lines.append("prove: cake-tui verify FILE.c")
    return "".join(f"// {line}\n".replace("\r", " ") for line in lines)


def _problem_text(bundle: Bundle) -> str:
    """Buffers, launches and reference of the problem as C for the harness."""
    plan: LaunchPlan = bundle.lowered.plans[-1]
    return reference_text(bundle.problem, plan, bundle.device.cores)


PLUGIN: Exporter = StandaloneC()
