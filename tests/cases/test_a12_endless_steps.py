"""A12: whatever never ends is ended by its limit, costs nobody else anything and is not tried again."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cake_tui.model import event as ev
from tests.cases.doubling import make_kernel, make_script, settings
from tests.cases.shell import Shell, all_gone, ended, events, log_of, variations
from tests.engine.scripted import folded, gone, until

pytestmark = pytest.mark.cc

SPIN = "static volatile int flag; while (!flag) { }"
HEAD = "#include <pthread.h>\n#include <signal.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
ENDLESS = {
    "spins on a flag nobody sets": ("", SPIN),
    "blocks its signals and spins": (
        HEAD,
        f"sigset_t all; sigfillset(&all); sigprocmask(SIG_BLOCK, &all, NULL); {SPIN}",
    ),
    "sleeps for ever": (HEAD, "for (;;) sleep(1000);"),
    "hands its work to a process of its own session": (HEAD, f"if (!fork()) {{ setsid(); {SPIN} }} {SPIN}"),
    "waits for a lock that it holds": (
        HEAD,
        "pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER; pthread_mutex_lock(&once); pthread_mutex_lock(&once);",
    ),
    "stops itself": (HEAD, "raise(SIGSTOP);"),
    "never comes back from being loaded": (
        HEAD + f"#if MODE == 1\n__attribute__((constructor)) static void begin(void) {{ {SPIN} }}\n#endif\n",
        "",
    ),
}


def kernels_of(session: Path) -> list[int]:
    """Return the processes that run kernels of this session."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if b"cake_tui.backends._evaluator" in words and str(session).encode() in words:
            found.append(int(path.parent.name))
    return found


@pytest.mark.parametrize("how", variations(ENDLESS))
def test_a_kernel_that_never_ends(shell: Shell, how: str) -> None:
    head, middle = ENDLESS[how]
    make_kernel(shell, f"#if MODE == 1\n{middle}\n#endif", head)
    agent = make_script(shell, ("set_MODE(1)", "hangs", 0), ("set_MODE(2)", "good", 0), ("set_MODE(1)", "again", 0))
    limits = settings("run_s=0.6")
    shell.apart("run", "two", "--backend", "cpu", "--name", "a", "--agent", agent, "--headless", *limits)
    session = shell.sessions / "a"
    rows = folded(session).rows
    assert [row.outcome for row in rows[:2]] == ["Measured", "TimedOut"], log_of(session)
    assert rows[2].outcome == "Measured"  # the good one after it
    built, ending = (
        next(one for one in events(session, kind) if one.candidate == 1) for kind in (ev.BuildEnded, ev.CandidateEnded)
    )
    assert ending.mono - built.mono < 10
    assert ending.outcome.limit_s > 0
    assert events(session, ev.EvaluatorReplaced)[0].candidate == 1
    assert [(row.outcome, row.repeats) for row in rows[3:4]] == [("Repeated", 1)]
    until(lambda: not kernels_of(session))


def test_after_a_resume_it_is_answered_from_the_record(shell: Shell) -> None:
    make_kernel(shell, f"#if MODE == 1\n{SPIN}\n#endif")
    agent = make_script(shell, ("set_MODE(1)", "hangs", 0), ("set_MODE(2)", "", 2), ("set_MODE(3)", "", 0))
    shell.apart(
        "run",
        "two",
        "--backend",
        "cpu",
        "--name",
        "a",
        "--agent",
        agent,
        "--set",
        "run_s=0.5",
        "--set",
        "guard_refusals=1",
    )
    session = shell.sessions / "a"
    until(lambda: ended(session) >= 2)
    engine = shell.pid()
    began = time.monotonic()
    shell.here("stop", "a")
    until(all_gone([engine, *kernels_of(session)]))
    assert time.monotonic() - began < 20
    again = make_script(shell, *[("set_MODE(1)", "once more", 0)] * 9, name="again.toml")
    shell.apart("resume", "a", "--headless", "--agent", again)
    rows = folded(session).rows
    assert rows[1].outcome == "TimedOut"
    later = [row for row in rows[2:] if row.proposal.reason == "once more"]
    assert later
    assert {(row.outcome, row.repeats) for row in later} == {("Repeated", 1)}
    assert len(events(session, ev.EvaluatorReplaced)) == 1


COMPILER = """\
#!/bin/sh
for word; do case $word in --version) exec cc --version;; trifle.c|*runtime.c|*rates.c) exec cc "$@";; esac; done
grep -q 'MODE.*1$' kernel.c || exec cc "$@"
trap '' TERM INT HUP
(trap '' TERM INT HUP; while :; do sleep 1; done) &
setsid sh -c 'while :; do sleep 1; done' &
while :; do echo chatter; sleep 0.01; done
"""


def test_a_compiler_that_never_ends(shell: Shell) -> None:
    compiler = shell.folder / "cc"
    compiler.write_text(COMPILER, encoding="utf-8")
    compiler.chmod(0o755)
    shell.environment["CC"] = str(compiler)
    make_kernel(shell, "")
    agent = make_script(shell, ("set_MODE(1)", "hangs", 0), ("set_MODE(2)", "good", 0), ("set_MODE(1)", "again", 0))
    limits = settings("compile_s=2")
    shell.apart("run", "two", "--backend", "cpu", "--name", "a", "--agent", agent, "--headless", *limits)
    session = shell.sessions / "a"
    rows = folded(session).rows
    assert [row.outcome for row in rows[:4]] == ["Measured", "TimedOut", "Measured", "Repeated"], log_of(session)
    assert "chatter\n" in (session / "candidates" / "1" / "build.log").read_text(encoding="utf-8")
    assert rows[1].step == "planned" or rows[1].reason.startswith("compiler ended after")
    until(lambda: all(gone(pid) for pid in _mentioning(str(shell.folder))))
    assert shell.left_behind() == []


def _mentioning(text: str) -> list[int]:
    """Return the processes whose environment mentions a text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if text.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found
