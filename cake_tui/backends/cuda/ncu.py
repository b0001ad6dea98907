"""Nsight Compute: one call over several kernels, its metrics, and its CSV read into profiles.

Metric names and units as Nsight Compute's own documentation has them; those that a version or chip lacks are left
out and stay None.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import math
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from cake_tui.backends.cuda import ncu_target
from cake_tui.errors import ENVIRONMENT, UserError
from cake_tui.model.device import Device
from cake_tui.model.facts import Profile
from cake_tui.model.jobs import Inspect, Inspected, Seen

COUNTERS = "counters.csv"
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
LATENCY = "smsp__average_warp_latency_per_inst_issued.ratio"  # all stalls and the cycle that issues
# Reasons to wait that rules ask about; what is left of the whole is "other".
STALLS = (
    "long_scoreboard", "lg_throttle", "short_scoreboard", "mio_throttle", "math_pipe_throttle", "barrier", "wait",
    "no_instruction", "not_selected", "dispatch_stall",
)  # fmt: skip
PASSES = "profiler__replayer_passes"
TIME = "gpu__time_duration.sum"
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
L2 = "lts__throughput.avg.pct_of_peak_sustained_elapsed"
ISSUE = "smsp__issue_active.avg.pct_of_peak_sustained_active"
FMA = "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
SECTORS = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{}.ratio"
LOCAL = "smsp__inst_executed_op_local_{}.sum"
LANES = "smsp__average_thread_inst_executed_per_inst_executed.ratio"
BYTES = ("dram__bytes_read.sum", "dram__bytes_write.sum")
METRICS = (
    TIME, OCCUPANCY, DRAM, L2, ISSUE, FMA, LATENCY, LANES, *BYTES, *(STALL.format(reason) for reason in STALLS),
    *(form.format(way) for form in (CONFLICTS, WAVEFRONTS, SECTORS, LOCAL) for way in ("ld", "st")),
)  # fmt: skip
# What ncu knows of a launch without counting; asked for by name, they are in every raw page.
LAUNCH = (
    "launch__registers_per_thread", "launch__shared_mem_per_block_dynamic", "launch__shared_mem_per_block_static",
    "launch__waves_per_multiprocessor", "launch__grid_size", "launch__block_size",
    "launch__occupancy_limit_registers", "launch__occupancy_limit_shared_mem", "launch__occupancy_limit_warps",
    "launch__occupancy_limit_blocks", "sm__maximum_warps_per_active_cycle_pct",
)  # fmt: skip
LIMITERS = {
    "launch__occupancy_limit_registers": "registers", "launch__occupancy_limit_shared_mem": "shared memory",
    "launch__occupancy_limit_warps": "threads", "launch__occupancy_limit_blocks": "blocks",
}  # fmt: skip
NO_PERMISSION = "ERR_NVGPUCTRPERM"
ALLOW = (
    "allow counters: run as root or with CAP_SYS_ADMIN, or set NVreg_RestrictProfilingToAdminUsers=0 for the nvidia "
    "module and load it again"
)
INSTALL = "install Nsight Compute (it comes with the CUDA toolkit, or as nsight-compute from NVIDIA's package feed)"
_SCALE = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_UNIT = re.compile(r"(?P<prefix>[numKMGT]?)(?P<unit>second|s|byte|B|hz|Hz|cycle|inst|thread|warp|block|sector)\b")
_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
_PASSES = re.compile(r"(\d+) pass(?:es)?\b")
_ABOUT_METRICS = re.compile(r"^==(?:ERROR|WARNING)==[^\n]*\bmetric[^\n]*", re.IGNORECASE | re.MULTILINE)


def find_tool(name: str) -> str | None:
    """Return the path of one of CUDA's tools, or None: on the path, in a toolkit, or from one of NVIDIA's wheels."""
    spec = importlib.util.find_spec("nvidia")
    wheels = [Path(place) for place in (spec.submodule_search_locations or [])] if spec else []
    places = [
        *sorted(Path("/opt/nvidia/nsight-compute").glob("*"), reverse=True),
        *sorted(Path("/usr/local").glob("cuda*/bin"), reverse=True),
        *(place for wheel in wheels for place in sorted(wheel.glob("cu1*/bin"), reverse=True)),
        *(place for wheel in wheels for place in sorted(wheel.glob("cu1*/compute-sanitizer"), reverse=True)),
    ]
    return shutil.which(name) or next((found for place in places if (found := shutil.which(name, path=place))), None)


class Ncu:
    """Counts while kernels run: an `Inspector`. Metrics that this ncu does not know are asked for once."""

    def __init__(self) -> None:
        self._unknown: set[str] = set()

    def command(self, job: Inspect, store: Path, device: Device, folder: Path) -> tuple[str, ...]:
        """Write the order and return ncu's command; raises UserError (ENVIRONMENT) where there is no ncu."""
        tool = find_tool("ncu")
        if tool is None:
            raise UserError(f"no ncu on this machine; {INSTALL}", ENVIRONMENT)
        ncu_target.write_order(job, store, device, folder)
        wanted = ",".join(name for name in (*METRICS, *LAUNCH) if name not in self._unknown)
        return (
            tool, "--target-processes", "all", "--profile-from-start", "off", "--replay-mode", "kernel",
            "--cache-control", "all" if job.problem.cache == "cold" else "none", "--clock-control", "none",
            "--metrics", wanted, "--csv", "--page", "raw", "--print-units", "base", "--log-file", COUNTERS,
            *ncu_target.command(folder),
        )  # fmt: skip

    def read(self, job: Inspect, folder: Path, output: str, *, timed_out: bool) -> Inspected:
        """Match the rows to the launches that were made, in their order; of several launches the longest counts."""
        log = ncu_target.text_of(folder / COUNTERS)
        if NO_PERMISSION in output or NO_PERMISSION in log:
            return Inspected(refused=f"the driver gives counters to administrators alone ({NO_PERMISSION})", cure=ALLOW)
        made, failed = ncu_target.read_made(folder)
        rows = parse(log)
        self._learn_unknown(f"{output}\n{log}")
        if not rows:
            if timed_out:
                return Inspected(refused="ncu took too long and was ended", cure="profile smaller shapes")
            return Inspected(
                tuple(Seen(number, failed=why) for number, why in failed.items()), refused=_said(output, log)
            )
        passes = _passes(f"{output}\n{log}")
        found: dict[int, list[Profile]] = {}
        for launch, row in zip(made, rows):
            if _same_kernel(launch.entry, row.kernel):
                profile = profile_of(row, passes)
                found.setdefault(launch.candidate, []).append(profile)
        seen = [Seen(number, _longest(profiles)) for number, profiles in found.items()]
        rest = {number for number, _ in job.subjects} - found.keys()
        seen += [Seen(number, failed=failed.get(number, "ncu gave no counters of it")) for number in sorted(rest)]
        return Inspected(tuple(seen))

    def _learn_unknown(self, text: str) -> None:
        """Leave out the next time what ncu says it does not know: one bad name spoils the whole call."""
        for line in _ABOUT_METRICS.findall(text):
            self._unknown.update(name for name in METRICS if name in line)


# -- the table -----------------------------------------------------------------------------------------------


class Row(msgspec.Struct, frozen=True):
    """The counters of one launch by metric, in base units: seconds, bytes, hertz, counts, percent."""

    kernel: str
    values: dict[str, float]


def parse(text: str) -> list[Row]:
    """Read ncu's CSV, one row a launch; whatever stands around the table is passed over.

    Both pages are understood: ``raw`` (a column a metric, a row of units) and ``details`` (a row a metric).
    A value that is no finite number is left out.
    """
    lines = text.replace("\0", "").replace("\ufeff", "").splitlines()
    start = next((at for at, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return []
    table = [row for row in csv.reader(io.StringIO("\n".join(lines[start:]))) if row]
    header = [name.strip() for name in table[0]]
    if "Metric Name" in header:
        return _long(header, table[1:])
    return _wide(header, table[1:])


def _wide(header: list[str], rows: list[list[str]]) -> list[Row]:
    units: dict[str, str] = {}
    out: list[Row] = []
    for cells in rows:
        named = dict(zip(header, cells))
        if not named.get("ID", "").strip():
            units = named
            continue
        if not named["ID"].strip().isdigit():
            continue  # what ncu says behind the table
        values = {}
        for name, cell in named.items():
            metric, _, unit = name.partition(" [")  # newer pages have the unit behind the name
            value = number(cell, unit.rstrip("]") or units.get(name, ""))
            if value is not None and "__" in metric:  # what else is a number is about the launch, as the stream's
                values[metric] = value
        out.append(Row(named.get("Kernel Name", ""), values))
    return out


def _long(header: list[str], rows: list[list[str]]) -> list[Row]:
    kernels: dict[str, str] = {}
    found: dict[str, dict[str, float]] = {}
    for cells in rows:
        named = dict(zip(header, cells))
        identity = named.get("ID", "").strip()
        if not identity.isdigit():
            continue
        kernels.setdefault(identity, named.get("Kernel Name", ""))
        values = found.setdefault(identity, {})
        value = number(named.get("Metric Value", ""), named.get("Metric Unit", ""))
        if value is not None:
            values[named.get("Metric Name", "")] = value
    return [Row(kernels[identity], values) for identity, values in found.items()]


def number(cell: str, unit: str) -> float | None:
    """Return a cell in base units; None for what is no finite number. Thousands may be grouped by commas."""
    text = cell.strip().replace("\u00a0", "").replace(" ", "")
    if _GROUPED.fullmatch(text):
        text = text.replace(",", "")
    try:
        value = float(text)
    except ValueError:
        return None
    # float() takes underscores and words for what is no number.
    if not math.isfinite(value) or "_" in text:
        return None
    match = _UNIT.match(unit.strip())
    return value * _SCALE[match["prefix"]] if match else value


def _same_kernel(entry: str, kernel: str) -> bool:
    """ncu gives a kernel's name alone, or with its parameters."""
    return kernel.strip().split("(")[0].split("<")[0].strip() in ("", entry)


# -- profiles ------------------------------------------------------------------------------------------------


def profile_of(row: Row, passes: int | None = None) -> Profile:
    """Return the counters of one launch; what ncu did not count is None."""
    get = row.values.get
    conflicts, wavefronts, local = (
        _sum(row.values, (form.format("ld"), form.format("st"))) for form in (CONFLICTS, WAVEFRONTS, LOCAL)
    )
    share = conflicts / wavefronts if conflicts is not None and wavefronts else None
    limits = {word: row.values[name] for name, word in LIMITERS.items() if name in row.values}
    return Profile(
        source="ncu",
        sm_occupancy_pct=get(OCCUPANCY),
        memory_throughput_pct=get(DRAM),
        sm_busy_pct=get(ISSUE),
        shared_mem_bank_conflicts=_whole(conflicts),
        regs_per_thread=_whole(get("launch__registers_per_thread")),
        max_dynamic_smem_bytes=_whole(get("launch__shared_mem_per_block_dynamic")),
        smem_static_bytes=_whole(get("launch__shared_mem_per_block_static")),
        occupancy_limit_pct=get("sm__maximum_warps_per_active_cycle_pct"),
        occupancy_limiter=min(limits, key=limits.__getitem__) if limits else None,
        blocks=_whole(get("launch__grid_size")),
        threads=_whole(get("launch__block_size")),
        waves=get("launch__waves_per_multiprocessor"),
        issue_active_pct=get(ISSUE),
        fma_pipe_pct=get(FMA),
        l2_throughput_pct=get(L2),
        dram_bytes=_sum(row.values, BYTES),
        stalls=stalls(row.values),
        bank_conflict_share=None if share is None else min(share, 1.0),
        sectors_per_load=get(SECTORS.format("ld")) or None,  # 0 where there is no such load
        sectors_per_store=get(SECTORS.format("st")) or None,
        local_accesses=_whole(local),
        active_lanes=get(LANES),
        profiled_us=None if TIME not in row.values else 1e6 * row.values[TIME],
        passes=_whole(get(PASSES)) or passes,
        kernel=row.kernel.split("(")[0] or None,
    )


def stalls(values: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """Return each reason's share of all waiting, largest first; nothing where the whole was not counted.

    The whole is the warp's cycles between two instructions without the one that issues; what the asked reasons
    leave of it is ``other``.
    """
    whole = values.get(LATENCY)
    if whole is None or whole <= 1.0:
        return ()
    found = {reason: values[STALL.format(reason)] for reason in STALLS if STALL.format(reason) in values}
    if not found:
        return ()
    waited = max(whole - 1.0, sum(found.values()))
    shares = {reason: cycles / waited for reason, cycles in found.items()}
    shares["other"] = max(0.0, 1.0 - sum(shares.values()))
    return tuple(sorted(shares.items(), key=lambda entry: -entry[1]))


def _longest(profiles: list[Profile]) -> Profile:
    return max(profiles, key=lambda one: one.profiled_us or 0.0)


def _sum(values: Mapping[str, float], names: Iterable[str]) -> float | None:
    found = [values[name] for name in names if name in values]
    return sum(found) if found else None


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _passes(text: str) -> int | None:
    found = [int(count) for count in _PASSES.findall(text)]
    return max(found, default=None)


def _said(output: str, log: str) -> str:
    """Return the tool's own words for why there is no table."""
    lines = [line.strip() for line in f"{log}\n{output}".splitlines() if line.strip()]
    wrong = [line for line in lines if "==ERROR==" in line or "error" in line.lower()]
    told = (wrong or lines or ["it printed nothing"])[0]
    return f"ncu gave no counters: {told.removeprefix('==ERROR==').strip()[:300]}"
