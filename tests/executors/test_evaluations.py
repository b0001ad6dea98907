"""Evaluations: a kernel that dies, hangs, leaks or prints costs one evaluator and nothing else."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from cake_tui.backends.cpu import PLUGIN
from cake_tui.errors import UserError
from cake_tui.executors.local import Local
from cake_tui.model.jobs import (
    Check,
    Checked,
    Lost,
    Refused,
    Timed,
    TimePairs,
)
from tests.executors.doubling import GOOD, PROBLEM, alive, build_one, check, doing, wait_until

pytestmark = pytest.mark.cc


def test_kernel_is_built_checked_and_timed(executor: Local) -> None:
    subject = build_one(executor, GOOD)
    assert isinstance(executor.evaluate(check(subject), 30.0), Checked)
    reply = executor.evaluate(TimePairs(PROBLEM, subject, subject, 3, seed=4, sample_ms=1.0), 30.0)
    assert isinstance(reply, Timed)
    assert [pair.holder_first for pair in reply.series.pairs] == [True, False, True]
    assert all(0 < pair.holder_us < 1e5 and 0 < pair.candidate_us < 1e5 for pair in reply.series.pairs)
    assert reply.series.before is not None
    assert reply.series.before.rate is not None
    assert 0.1 < reply.series.before.rate < 20.0


@pytest.mark.parametrize(
    ("statement", "name"), [("*(volatile int *)0 = 1;", "SIGSEGV"), ("abort();", "SIGABRT"), ("kill(0, 9);", "SIGKILL")]
)
def test_dying_kernel_costs_one_evaluator(executor: Local, statement: str, name: str) -> None:
    good, bad = build_one(executor, GOOD), build_one(executor, "#include <signal.h>\n" + doing(statement))
    executor.evaluate(check(good), 30.0)
    time.sleep(0.3)  # the spare is warm, as it is in a session
    reply = executor.evaluate(check(bad), 30.0)
    assert isinstance(reply, Lost)
    assert (reply.signal, reply.timed_out) == (name, False)
    assert isinstance(executor.evaluate(check(good), 30.0), Checked)
    assert executor.replacements == 1


def test_clean_exit_in_the_middle_of_a_job_is_a_loss(executor: Local) -> None:
    reply = executor.evaluate(check(build_one(executor, doing("_exit(0);"))), 30.0)
    assert isinstance(reply, Lost)
    assert "status 0" in reply.reason


def test_run_past_its_own_limit_ends_long_before_the_jobs_limit(executor: Local) -> None:
    subject = build_one(executor, doing("for (volatile int on = 1; on;) {}"))
    began = time.monotonic()
    reply = executor.evaluate(check(subject, run_limit_s=0.3), 60.0)
    assert isinstance(reply, Lost)
    assert reply.timed_out
    assert reply.limit_s == 0.3
    assert time.monotonic() - began < 10.0


def test_job_past_its_limit_is_killed_with_children_that_left_the_group(executor: Local, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    write = f'FILE *f = fopen("{pid_file}", "w"); fprintf(f, "%d", getpid()); fclose(f);'
    text = f"if (!fork()) {{ setsid(); if (!fork()) {{ {write} for (;;) pause(); }} _exit(0); }} for (;;) pause();"
    subject = build_one(executor, "#include <stdio.h>\n" + doing(text))
    reply = executor.evaluate(check(subject, run_limit_s=600.0), 1.0)
    assert isinstance(reply, Lost)
    assert reply.timed_out
    assert reply.limit_s == 1.0
    assert not alive(int(pid_file.read_text()))


def test_kernel_that_takes_all_memory_is_ended(tmp_path: Path) -> None:
    touching = "char *volatile p = malloc(1 << 20); for (int j = 0; j < 1 << 20; j += 512) p[j] = 1; usleep(500);"
    with Local("cpu", tmp_path / "store", PLUGIN.devices()[0], memory_bytes=400 << 20) as executor:
        good, endless = build_one(executor, GOOD), build_one(executor, doing(f"for (;;) {{ {touching} }}"))
        reply = executor.evaluate(check(endless, 30.0), 60.0)
        assert isinstance(reply, Lost)
        assert "of memory, allowed: 0.4 GB" in reply.reason
        keeping = build_one(
            executor, doing(f"for (int i = 0; i < 200; i++) {{ {touching.replace('usleep(500);', '')} }}")
        )
        kept = executor.evaluate(check(keeping, 30.0), 60.0)
        assert isinstance(kept, Refused)
        assert "keeps 2" in kept.outcome.reason
        assert isinstance(executor.evaluate(check(good), 30.0), Checked)


def test_printing_kernel_disturbs_nothing(executor: Local) -> None:
    noisy = "#include <stdio.h>\n" + doing('printf("%d{\\"ready\\":true}\\n", N); fputs("to errors\\n", stderr);')
    assert isinstance(executor.evaluate(check(build_one(executor, noisy)), 30.0), Checked)


def test_what_the_wait_hook_raises_ends_the_job_and_travels_on(executor: Local) -> None:
    subject = build_one(executor, doing("for (;;) pause();"))
    calls: list[float] = []

    def wait() -> None:
        calls.append(time.monotonic())
        if len(calls) > 20:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        executor.evaluate(check(subject, run_limit_s=600.0), 600.0, wait)
    assert isinstance(executor.evaluate(check(build_one(executor, GOOD)), 30.0), Checked)


def test_evaluator_killed_between_jobs_is_replaced_without_a_loss(executor: Local) -> None:
    subject = build_one(executor, GOOD)
    assert isinstance(executor.evaluate(check(subject), 30.0), Checked)
    os.kill(executor._evaluator.pid, signal.SIGKILL)
    assert wait_until(executor._evaluator.has_ended)
    assert isinstance(executor.evaluate(check(subject), 30.0), Checked)


def test_user_mistake_found_by_the_evaluator_comes_as_one(executor: Local) -> None:
    import msgspec

    problem = msgspec.structs.replace(PROBLEM, reference="def reference(xp, z):\n    return z, z\n")
    subject = build_one(executor, GOOD)
    with pytest.raises(UserError, match="reference"):
        executor.evaluate(Check(problem, subject, "full", 1), 30.0)
    assert isinstance(executor.evaluate(check(subject), 30.0), Checked)
