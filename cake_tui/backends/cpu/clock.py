"""The machine's clock around a series: rate of dependent additions, load of others, time taken by the hypervisor."""

from __future__ import annotations

import time
from pathlib import Path

from cake_tui.backends.cpu.runtime import Runtime
from cake_tui.model.measure import Clock

_STEAL = 7  # position among the "cpu" line's numbers
_last: list[tuple[int, int]] = []


def read_clock(runtime: Runtime) -> Clock:
    """Take one reading; lasts about a millisecond. `steal_pct` is since the last reading."""
    rate = runtime.rate()
    load = steal_pct = None
    try:
        lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("procs_running "):
            load = max(float(line.split()[1]) - 1.0, 0.0)  # this reading runs too
        elif line.startswith("cpu "):
            ticks = [int(number) for number in line.split()[1:]]
            if len(ticks) > _STEAL:
                total, stolen = sum(ticks[: _STEAL + 1]), ticks[_STEAL]
                if _last and total > _last[0][0]:
                    steal_pct = 100.0 * (stolen - _last[0][1]) / (total - _last[0][0])
                _last[:] = [(total, stolen)]
    return Clock(mono=time.monotonic(), rate=rate, load=load, steal_pct=steal_pct)
