"""What `doctor` says of NVIDIA GPUs: what is there, what disturbs timing or profiling, and the line that cures it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from cake_tui.backends.cuda import ncu, sanitizer
from cake_tui.cli._found import Found
from cake_tui.monitors import nvml

PARAMETERS = Path("/proc/driver/nvidia/params")
EXCLUSIVE = 3  # NVML's compute mode: one process at a time
_ADMIN_ONLY = re.compile(r"^RmProfilingAdminOnly:\s*1\b", re.MULTILINE)


def look() -> Iterator[Found]:
    """Look at driver, GPUs and tools; nothing here raises for a machine that lacks them."""
    found = nvml.state()
    if found.error:
        do = "only needed for CUDA: install NVIDIA's driver, or run on the CPU"
        yield Found("GPU", "note", f"NVML says: {found.error}", do)
        return
    if not found.gpus:
        yield Found("GPU", "note", f"driver {found.driver}, but no GPU", "only needed for CUDA; look at nvidia-smi")
        return
    for index, gpu in enumerate(found.gpus):
        yield Found("GPU", "ok", f"driver {found.driver}: {gpu.name} {gpu.uuid}")
        yield from _disturbing(index, gpu)
    yield from _tools()


def _disturbing(index: int, gpu: nvml.Gpu) -> Iterator[Found]:
    """Say what makes timings on one GPU less steady than they could be, where NVML tells."""
    one = f"sudo nvidia-smi -i {index}"
    if gpu.persistence is False:
        text = "persistence mode is off: the driver unloads between runs, and each new process waits for it"
        yield Found("GPU start", "note", text, f"{one} -pm 1")
    if gpu.sm_mhz and gpu.sm_max_mhz:
        text = f"{gpu.sm_mhz:.0f} of at most {gpu.sm_max_mhz:.0f} MHz now; the gate copes with a clock that moves"
        steady = f"steadier where you may: {one} -lgc {gpu.sm_max_mhz:.0f} (undo: -rgc)"
        low = gpu.sm_mhz < 0.9 * gpu.sm_max_mhz
        yield Found("GPU clock", "note" if low else "ok", text, steady)
    if gpu.mig:
        text = "MIG is on: instances share clock and power, and the driver tells less of who else works"
        yield Found("GPU sharing", "note", text, f"{one} -mig 0")
    if gpu.processes:
        text = f"{gpu.processes} processes use it now: their load is the gate's noise (S9)"
        yield Found("GPU sharing", "note", text, f"end them: nvidia-smi -i {index} lists them")
    if gpu.display:
        text = "a screen is attached: drawing shares the device, and kernels of more than some seconds are ended"
        yield Found("GPU sharing", "note", text, "use another GPU (--device), or stop the desktop")
    if gpu.compute_mode == EXCLUSIVE:
        text = "exclusive mode: one process at a time, but an evaluator has a warm spare beside it"
        yield Found("GPU sharing", "missing", text, f"{one} -c 0")


def _tools() -> Iterator[Found]:
    """Say which tools are there, and whether this user may read counters."""
    counts = ncu.find_tool("ncu")
    if counts is None:
        yield Found("profiler", "note", "no ncu: feedback rests on static sources and the time", ncu.INSTALL)
    elif _restricted():
        yield Found("profiler", "note", f"{counts}, but counters are for administrators alone", ncu.ALLOW)
    else:
        yield Found("profiler", "ok", counts)
    checks = ncu.find_tool("compute-sanitizer")
    text = checks or "no compute-sanitizer: the best is not looked at for races and bad accesses"
    yield Found("sanitizer", "ok" if checks else "note", text, sanitizer.INSTALL)
    shows = ncu.find_tool("nvdisasm")
    text = shows or "no nvdisasm: instruction counts stay unknown"
    yield Found("disassembler", "ok" if shows else "note", text, "pip install nvidia-cuda-nvdisasm")


def _restricted() -> bool:
    """Whether the driver gives counters to administrators alone, and this user is none."""
    try:
        text = PARAMETERS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return _ADMIN_ONLY.search(text) is not None and os.geteuid() != 0
