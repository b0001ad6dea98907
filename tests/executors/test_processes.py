"""What is left behind when the executor is closed or killed: nothing; and time that nobody had."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cake_tui.backends.cpu import PLUGIN
from cake_tui.executors.local import Local
from cake_tui.model.jobs import BuildJob, NotBuilt, Timed, TimePairs
from tests.executors.doubling import GOOD, PROBLEM, build_one, check, lowered, marked, state_of, wait_until

pytestmark = pytest.mark.cc


def test_close_leaves_no_process(tmp_path: Path) -> None:
    executor = Local("cpu", tmp_path / "store", PLUGIN.devices()[0])
    executor.evaluate(check(build_one(executor, GOOD)), 30.0)
    assert len(marked(executor._mark)) >= 2
    executor.close()
    executor.close()
    assert marked(executor._mark) == []
    assert executor._leash.poll() is not None


@pytest.mark.parametrize("busy", ["compiling", "running"])
def test_killed_engine_leaves_no_process(tmp_path: Path, busy: str) -> None:
    script = f"""
        import os, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from pathlib import Path
        from tests.executors.doubling import *
        executor = Local("cpu", Path({str(tmp_path)!r}) / "store", PLUGIN.devices()[0])
        subject = build_one(executor, doing("for (;;) pause();"))
        said = []
        def wait():
            if not said and (len(marked(executor._mark)) >= 3 or {busy!r} == "running"):
                said.append(1)
                print(executor._mark, flush=True)
        if {busy!r} == "running":
            executor.evaluate(check(subject, 600.0), 600.0, wait)
        else:
            asked = 'case "$*" in *version*) echo 1;; *trifle*) exec cc "$@";; *) sleep 300;; esac'
            Path("cc").write_text("#!/bin/sh\\n" + asked + "\\n")
            Path("cc").chmod(0o755)
            os.environ["CC"] = str(Path("cc").absolute())
            executor._version = "odd"
            list(executor.build([BuildJob(lowered(GOOD, ("-DX",)))], wait))
    """
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    engine = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, env=env, cwd=tmp_path
    )
    assert engine.stdout is not None
    mark = engine.stdout.readline().decode().strip()
    assert mark
    assert marked(mark)
    engine.kill()
    engine.wait()
    engine.stdout.close()
    assert wait_until(lambda: marked(mark) == [])


def test_time_that_was_not_had_does_not_count(tmp_path: Path) -> None:
    """Stop engine and kernel together for longer than the limit: the kernel still ends well."""
    script = f"""
        import os, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from pathlib import Path
        from tests.executors.doubling import *
        with Local("cpu", Path({str(tmp_path)!r}) / "store", PLUGIN.devices()[0]) as executor:
            subject = build_one(executor, doing("usleep(60000);"))
            said = []
            def wait():
                if not said:
                    said.append(1)
                    print(executor._evaluator.pid, flush=True)
            reply = executor.evaluate(check(subject, 1.2), 2.5, wait)
            print(type(reply).__name__, flush=True)
    """
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    engine = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, env=env)
    assert engine.stdout is not None
    evaluator = int(engine.stdout.readline())
    for pid in (engine.pid, evaluator):
        os.kill(pid, signal.SIGSTOP)
    time.sleep(3.0)
    for pid in (evaluator, engine.pid):
        os.kill(pid, signal.SIGCONT)
    assert engine.stdout.readline().decode().strip() == "Checked"
    engine.wait(60)
    engine.stdout.close()


def test_compilers_stand_still_while_a_kernel_is_timed(
    executor: Local, compiler: Callable[[str], None], tmp_path: Path
) -> None:
    good = build_one(executor, GOOD)
    pids = tmp_path / "pids"
    # Nothing that forks: a shell that waits for a stopped child to start is not stopped itself.
    compiler(f'case "$*" in *SLOW*) echo $$ >> {pids}; while :; do :; done;; *) exec cc "$@";; esac\n')
    jobs = [BuildJob(lowered(GOOD, ("-DSLOW",)), timeout_s=3.0), BuildJob(lowered(GOOD, ("-DX",)))]
    building = executor.build(jobs)
    position, _ = next(building)
    assert position == 1
    assert wait_until(pids.exists)
    stood = []

    def wait() -> None:
        stood.append(wait_until(lambda: state_of(int(pids.read_text())) == "T"))

    reply = executor.evaluate(TimePairs(PROBLEM, good, good, 20, seed=4, sample_ms=5.0), 30.0, wait)
    assert isinstance(reply, Timed)
    assert stood
    assert all(stood)
    assert state_of(int(pids.read_text())) != "T"
    [(_, slow)] = list(building)
    assert isinstance(slow, NotBuilt)
    assert slow.timed_out


def test_what_a_killed_executor_left_in_the_store_is_removed_by_the_next(tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    store = tmp_path / "store"
    for name in (f"building/{gone.pid}-abc", f"building/{os.getpid()}-abc"):
        (store / name).mkdir(parents=True)
        (store / name / "kernel.c").write_text("", encoding="utf-8")
    with Local("cpu", store, PLUGIN.devices()[0]):
        assert [entry.name for entry in (store / "building").iterdir()] == [f"{os.getpid()}-abc"]
