"""A24 and pitfall 18: budgets and limits count time that was had, whatever the wall clock does."""

from __future__ import annotations

import os
import re
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

import pytest

from cake_tui.model import event as ev
from tests.cases.doubling import make_kernel, make_script, settings
from tests.cases.shell import Shell, descendants, ended, events, variations
from tests.engine.scripted import folded, until
from tests.tui.pty_terminal import PtyTerminal

# Adds seconds from a file to the wall clock of every process that loads it.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile double *step;
__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("WALL_STEP");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file >= 0) step = mmap(0, sizeof *step, PROT_READ, MAP_SHARED, file, 0), close(file);
}
int clock_gettime(clockid_t clock, struct timespec *out) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, out);
    if (!result && step && clock == CLOCK_REALTIME) out->tv_sec += (time_t)*step;
    return result;
}
time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *out, void *zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec, out->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""


class Wall:
    """The wall clock of the processes of one shell."""

    def __init__(self, shell: Shell) -> None:
        source, library = shell.folder / "shim.c", shell.folder / "shim.so"
        source.write_text(SHIM, encoding="ascii")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
        self._file = shell.folder / "step"
        self.step(0.0)
        shell.environment |= {"LD_PRELOAD": str(library), "WALL_STEP": str(self._file)}

    def step(self, seconds: float) -> None:
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("d", seconds))


@pytest.fixture
def wall(shell: Shell) -> Wall:
    return Wall(shell)


def descendants_named(pid: int, name: str) -> list[int]:
    """Return what a process started whose command line mentions a name."""
    found = []
    for child in descendants(pid):
        with suppress(OSError):
            if name.encode() in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(child)
    return found


def gaps(session: Path, what: str) -> list[float]:
    return [gap.seconds for gap in events(session, ev.GapSeen) if gap.what == what]


@pytest.mark.cc
@pytest.mark.parametrize(
    ("hours", "pending"),
    [
        (10.0, "compile"),
        (-2.0, "agent"),
        *(pytest.param(*one, marks=pytest.mark.soak) for one in ((10.0, "agent"), (24 * 365.0, "compile"))),
    ],
)
def test_a_stepped_wall_clock_costs_nothing_and_ends_nothing(
    shell: Shell, wall: Wall, hours: float, pending: str
) -> None:
    """While a compiler or the agent is at work and a budget of six minutes runs."""
    steps = [(f"split_k({n}) + apply_unroll({m})", "", 0.8) for n in (2, 4, 8) for m in (2, 4)]
    flags = {"agent": make_script(shell, *steps), "hours": 0.1, "set": "compile_s=3"}
    began = time.monotonic()
    session = shell.start(device="ridge,compile_s=0.5,noise=0,failures=0", **flags)
    until(lambda: ended(session) >= 1)
    if pending == "compile":
        until(lambda: descendants_named(shell.pid(), "compile.py"))
    wall.step(hours * 3600)
    until(lambda: gaps(session, "wall"))
    until(lambda: ended(session) >= 3)
    (gap,) = gaps(session, "wall")
    assert gap == pytest.approx(hours * 3600, abs=5)
    history = folded(session)
    assert 0 < history.elapsed_s <= time.monotonic() - began
    assert history.state == "running"  # the budget of six minutes is not spent
    assert history.counts.get("TimedOut", 0) == 0
    assert [line for line in shell.here("tail", "a", "-n", "200").splitlines() if "gap of" in line]
    # The best was timed again before anything was compared with it.
    order = events(session, ev.GapSeen, ev.IncumbentTimed, ev.Coarse)
    at = next(place for place, event in enumerate(order) if isinstance(event, ev.GapSeen))
    later = order[at + 1 :]
    assert isinstance(later[0], ev.IncumbentTimed) or not any(isinstance(event, ev.Coarse) for event in later)
    # Whoever looks, from before or after the step, sees sane durations.
    for environment in ({}, {"LD_PRELOAD": ""}):
        out, _ = shell.apart("status", "a", **environment)
        assert re.search(r"· \d+(\.\d+)? s of 0.1 h ·", out), out
        assert "-" not in out.split("·")[2]
    shell.here("stop", "a")


@pytest.mark.cc
def test_stamps_and_plots_stay_ordered_on_screen(shell: Shell, wall: Wall) -> None:
    session = shell.start(device="ridge,series_s=0.05,noise=0")
    until(lambda: ended(session) >= 2)
    with PtyTerminal("attach", "a", "--sessions", str(shell.sessions)) as terminal:
        terminal.wait_for("RUNNING")
        wall.step(-7200.0)
        terminal.wait_for("gap of")
        count = ended(session)
        until(lambda: ended(session) >= count + 2)
        terminal.read(1.2)
        text = terminal.text()
        assert "RUNNING" in text
        assert not re.search(r"-\d+(\.\d+)? ?(s|min|h)\b", text), text
        assert terminal.process.poll() is None
    monos = [event.mono for event in events(session, ev.Event)]
    assert monos == sorted(monos)
    stamps = [event.t for event in events(session, ev.Event)]
    assert all(stamp.endswith("Z") and datetime.fromisoformat(stamp) for stamp in stamps)
    assert stamps != sorted(stamps)  # the clock really went back
    elapsed = [win.elapsed_s for win in folded(session).wins]
    assert elapsed == sorted(elapsed)


@pytest.mark.parametrize("zone", variations(["Pacific/Kiritimati", "America/St_Johns", "nonsense"]))
def test_time_zones_change_no_stamp(shell: Shell, zone: str) -> None:
    shell.environment["TZ"] = zone
    session = shell.headless(candidates=2)
    now = time.time()
    for event in events(session, ev.Event):
        assert abs(datetime.fromisoformat(event.t).timestamp() - now) < 120


@contextmanager
def stopped(pids: list[int], seconds: float) -> Iterator[None]:
    """Stop processes for so long."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    yield
    time.sleep(seconds)
    for pid in reversed(pids):
        os.kill(pid, signal.SIGCONT)


@pytest.mark.soak
def test_a_compile_is_not_ended_for_time_that_it_did_not_have(shell: Shell, soak_share: float) -> None:
    """At full size: 120 s in the middle of a compile that may take 60 s."""
    limit_s = max(1.5, 60 * soak_share)
    session = shell.start(device=f"ridge,compile_s={0.6 * limit_s}", set=f"compile_s={limit_s}")
    pid = shell.pid()
    until(lambda: events(session, ev.Planned) and descendants(pid))
    time.sleep(0.3)
    before = folded(session).elapsed_s
    gap_s = max(2.6, 120 * soak_share)
    with stopped([pid, *descendants(pid)], gap_s):
        pass
    until(lambda: events(session, ev.BuildEnded), 10 + limit_s)
    assert folded(session).counts.get("TimedOut", 0) == 0
    (gap,) = gaps(session, "stopped")
    assert gap == pytest.approx(gap_s, abs=1.5)
    assert folded(session).elapsed_s - before < gap_s
    assert "gap of" in shell.here("tail", "a", "-n", "100")
    shell.here("stop", "a")


@pytest.mark.cc
@pytest.mark.soak
def test_a_kernel_is_not_ended_for_time_that_it_did_not_have(shell: Shell) -> None:
    """Runs of a fiftieth of their limit, one of them with everything stopped for twice the limit in its middle."""
    head = "#include <time.h>\n"
    middle = """#if MODE == 1
  struct timespec now, begin; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
  do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < 20);
#endif"""
    make_kernel(shell, middle, head)
    agent = make_script(shell, ("set_MODE(1)", "slow", 0))
    shell.apart("run", "two", "--backend", "cpu", "--name", "a", "--agent", agent, *settings("run_s=1"))
    session = shell.sessions / "a"
    until(lambda: any(one.candidate == 1 for one in events(session, ev.BuildEnded)))
    pid = shell.pid()
    time.sleep(0.2)
    with stopped([pid, *descendants(pid)], 2.5):
        pass
    until(lambda: folded(session).state == "done")
    row = folded(session).rows[1]
    assert row.outcome == "Measured", row.reason
