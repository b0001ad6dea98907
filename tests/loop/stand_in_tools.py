"""Stand-ins for ncu and compute-sanitizer: programs that read the same order and write the same files as the real ones.

As a program: ``stand_in_tools.py TOOL MODE`` in the folder of the order.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from cake_tui.backends.cuda import ncu, ncu_target
from cake_tui.backends.cuda.sanitizer import REPORT, Sanitizer
from cake_tui.errors import ENVIRONMENT, UserError
from cake_tui.model.device import Device
from cake_tui.model.jobs import Inspect, Inspected

FIXED = ("ID", "Process ID", "Process Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size")


class Tools:
    """An inspector whose programs are the stand-ins; what they write is read as the real tools' output is."""

    def __init__(self, mode: str = "counts") -> None:
        self.mode = mode
        self.calls: list[tuple[str, tuple[int, ...]]] = []
        self._ncu, self._sanitizer = ncu.Ncu(), Sanitizer()

    def command(self, job: Inspect, store: Path, device: Device, folder: Path) -> tuple[str, ...]:
        self.calls.append((job.tool, tuple(number for number, _ in job.subjects)))
        if self.mode == "missing":
            raise UserError(f"no {job.tool} on this machine; {ncu.INSTALL}", ENVIRONMENT)
        ncu_target.write_order(job, store, device, folder)
        return (sys.executable, __file__, job.tool, self.mode)

    def read(self, job: Inspect, folder: Path, output: str, *, timed_out: bool) -> Inspected:
        tool = self._ncu if job.tool == "ncu" else self._sanitizer
        return tool.read(job, folder, output, timed_out=timed_out)


def values() -> dict[str, tuple[str, str]]:
    """Counters of a kernel that waits for loads at the roof of memory: metric -> (unit, value)."""
    found = dict.fromkeys((ncu.OCCUPANCY, ncu.FMA), ("%", "20.0"))
    found |= {ncu.DRAM: ("%", "91.5"), ncu.L2: ("%", "40"), ncu.ISSUE: ("%", "12.25"), ncu.TIME: ("ns", "152,400")}
    found |= {ncu.LATENCY: ("inst", "11.0"), ncu.LANES: ("", "32"), ncu.BYTES[0]: ("byte", "1,234,567,890")}
    found |= {ncu.STALL.format(reason): ("inst", "0") for reason in ncu.STALLS}
    found[ncu.STALL.format("long_scoreboard")] = ("inst", "7.5")
    found |= {ncu.CONFLICTS.format("ld"): ("", "0"), ncu.WAVEFRONTS.format("ld"): ("", "1,024")}
    found |= {"launch__registers_per_thread": ("register/thread", "42"), "launch__grid_size": ("", "1,024")}
    return found


def main() -> None:
    tool, mode = sys.argv[1:]
    order = json.loads(Path(ncu_target.ORDER).read_text(encoding="utf-8"))
    launches = [(number, one["entry"]) for number, plan, _ in order["candidates"] for one in plan["launches"]]
    if mode == "hangs":
        time.sleep(600.0)
    if mode == "permission":
        Path(ncu.COUNTERS).write_text(
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n", encoding="utf-8"
        )
        return
    with Path(ncu_target.MADE).open("w", encoding="utf-8") as made:
        for number, entry in launches:
            made.write(json.dumps({"candidate": number, "entry": entry}) + "\n")
    if tool != "ncu":
        errors = 2 if mode == "errors" else 0
        found = "========= Invalid __global__ write of size 4 bytes\n=========     at kernel+0x90 in k.cu:7\n" * errors
        total = f"ERROR SUMMARY: {errors} errors" if tool == "memcheck" else (
            f"RACECHECK SUMMARY: {errors} hazards displayed ({errors} errors, 0 warnings)"
        )  # fmt: skip
        Path(REPORT).write_text(f"========= COMPUTE-SANITIZER\n{found}========= {total}\n", encoding="utf-8")
        return
    counted = values()
    quoted = [*FIXED, *counted]
    rows = [quoted, ["" for _ in FIXED] + [unit for unit, _ in counted.values()]]
    for at, (_, entry) in enumerate(launches):
        cells = [str(at), "1", "python", entry, "1", "7", "(1, 1, 1)", "(1, 1, 1)"]
        rows.append(cells + [value for _, value in counted.values()])
    table = "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows)
    Path(ncu.COUNTERS).write_text(f'==PROF== Profiling "k" - 0: 0%....100% - 9 passes\n{table}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
