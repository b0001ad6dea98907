"""NVIDIA's compute-sanitizer over one kernel at a small shape: accesses out of bounds, races in shared memory."""

from __future__ import annotations

import re
from pathlib import Path

from cake_tui.backends.cuda import ncu_target
from cake_tui.backends.cuda.ncu import find_tool
from cake_tui.errors import ENVIRONMENT, UserError
from cake_tui.model.device import Device
from cake_tui.model.jobs import Inspect, Inspected, Seen

REPORT = "report.txt"
FOUND = 99  # exit status that tells findings from other failures
PADDING_BYTES = 4096  # behind each allocation: an overflow into the next one would go unseen
SHOWN = 5
INSTALL = "install compute-sanitizer (it comes with the CUDA toolkit; pip install nvidia-cuda-sanitizer-api)"
# One lane arrives for its warp behind a __syncwarp, which orders the other lanes' reads too; racecheck reports them.
BARRIERS = "mbarrier"
DOUBTFUL = "perhaps a false alarm: racecheck does not follow a lane that arrives on an mbarrier for its whole warp"
_LINE = re.compile(r"^=+ ?")
_SUMMARY = re.compile(r"(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: \d+ hazards? displayed \((\d+) error)")
_HEAD = re.compile(
    r"^(?:Invalid|Misaligned|Out-of-range|Race reported|Error: Race|Program hit|Barrier error|Internal Error"
    r"|Leaked|Fatal)"
)
_REFUSED = re.compile(r"(Device not supported[^\n]*|Unable to [^\n]*|Failed to initialize[^\n]*|No supported [^\n]*)")


class Sanitizer:
    """``memcheck`` and ``racecheck``: an `Inspector`. The tools see raw allocations, each with a gap behind it."""

    def command(self, job: Inspect, store: Path, device: Device, folder: Path) -> tuple[str, ...]:
        """Write the order and return the tool's command; raises UserError (ENVIRONMENT) where it is not there."""
        tool = find_tool("compute-sanitizer")
        if tool is None:
            raise UserError(f"no compute-sanitizer on this machine; {INSTALL}", ENVIRONMENT)
        ncu_target.write_order(job, store, device, folder)
        # Only what kernels do counts: calls of the driver that are refused are the target's own affair.
        more = ("--padding", str(PADDING_BYTES), "--report-api-errors", "no") if job.tool == "memcheck" else ()
        return (
            tool, "--tool", job.tool, *more, "--target-processes", "all", "--error-exitcode", str(FOUND),
            "--print-limit", "100", "--log-file", REPORT, *ncu_target.command(folder),
        )  # fmt: skip

    def read(self, job: Inspect, folder: Path, output: str, *, timed_out: bool) -> Inspected:
        """Return what was found; several candidates in one job share the findings, so that a job has one."""
        report = ncu_target.text_of(folder / REPORT)
        made, failed = ncu_target.read_made(folder)
        total = _SUMMARY.search(report)
        if timed_out:
            return Inspected(refused=f"{job.tool} took too long and was ended", cure="try a smaller shape")
        if total is None:
            told = _REFUSED.search(report) or _REFUSED.search(output)
            words = told.group(1) if told else (output.strip().splitlines() or ["it printed nothing"])[-1]
            return Inspected(refused=f"{job.tool} gave no report: {words.strip()[:300]}", cure="see cake-tui doctor")
        errors = int(total.group(1) or total.group(2))
        complaints = _complaints(report) if errors else ()
        by_barriers = any(BARRIERS in subject.lowered.source for _, subject in job.subjects)
        return Inspected(
            cure=DOUBTFUL if errors and job.tool == "racecheck" and by_barriers else "",
            seen=tuple(
                Seen(number, errors=errors, complaints=complaints, failed="" if errors else failed.get(number, ""))
                for number, _ in job.subjects
                if errors or number in failed or any(one.candidate == number for one in made)
            ),
        )


def _complaints(report: str) -> tuple[str, ...]:
    """Return the first findings, each with the line behind it that says where; equal ones once."""
    lines = [_LINE.sub("", line).strip() for line in report.splitlines()]
    found: dict[str, None] = {}
    for line, after in zip(lines, [*lines[1:], ""]):
        if _HEAD.match(line):
            found[f"{line} {after}".strip()[:300] if after.startswith(("at ", "and ")) else line[:300]] = None
        if len(found) == SHOWN:
            break
    return tuple(found)
