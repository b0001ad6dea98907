"""A17: a compiler that is missing or always fails is found before there is a session; later it pauses the run."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from cake_tui.backends.cpu.device import X86_LEVELS, local_device
from cake_tui.model import event as ev
from tests.cases.doubling import make_kernel, make_script, settings
from tests.cases.shell import Shell, ended, events, variations
from tests.engine.scripted import folded, until

RUN = ("run", "--backend", "cpu", "--name", "a", "--shape", "M=64,N=64,K=64")
VERSION = '#!/bin/sh\n[ "$1" = --version ] && echo "oldcc 9.0 [/x]" && exit 0\n'


def compiler(shell: Shell, script: str) -> Path:
    path = shell.folder / "oldcc"
    path.write_text(script, encoding="utf-8")
    path.chmod(0o755)
    shell.environment["CC"] = str(path)
    return path


def refused(shell: Shell, *words: str) -> str:
    """It is refused with one line for the environment, in either form, and nothing is made."""
    said = [shell.apart(*words, *flags, code=3)[1] for flags in ((), ("--headless",))]
    for err in said:
        assert err.count("\n") == 1, err
    assert list(shell.folder.glob("sessions/*")) == []
    assert shell.left_behind() == []
    return said[0]


@pytest.mark.cc
@pytest.mark.parametrize(
    "script",
    variations([
        VERSION + "echo 'kernel.c:1: error: sorry' >&2; exit 1\n",
        VERSION + "exit 0\n",  # says that all is well and writes nothing
        VERSION + "kill -SEGV $$\n",
        "#!/bin/sh\nexit 1\n",
        "#!/bin/sh\nexit 0\n",
        "#!/no/such/interpreter\n",
        "no script at all\n\x00",
        "#!/bin/sh\n[ $1 = --version ] && printf 'old\\377cc\\n' && exit 0\nprintf '\\377\\376 error\\n' >&2; exit 1\n",
    ], 2),
)  # fmt: skip
def test_a_compiler_that_always_fails(shell: Shell, script: str) -> None:
    path = compiler(shell, script)
    err = refused(shell, *RUN)
    assert str(path) in err
    assert "install gcc or clang" in err


@pytest.mark.cc
@pytest.mark.skipif(local_device().arch not in {name for name, *_ in X86_LEVELS[:2]}, reason="needs a newer x86-64")
def test_a_compiler_older_than_the_processor_names_what_it_knows(shell: Shell) -> None:
    arch = local_device().arch
    compiler(
        shell,
        VERSION + f'for word; do [ "$word" = -march={arch} ] && echo "error: unknown arch" >&2 && exit 1; done\n'
        'exec cc "$@"\n',
    )
    err = refused(shell, *RUN)
    levels = [name for name, *_ in X86_LEVELS]
    for part in (arch, "oldcc 9.0", f"the highest it makes is {levels[levels.index(arch) + 1]}"):
        assert part in err


@pytest.mark.parametrize("backend", variations(["auto", "cpu"]))
def test_a_machine_without_a_compiler_says_what_to_install(shell: Shell, backend: str) -> None:
    """PATH is empty: neither cc, gcc nor clang is there."""
    shell.environment["PATH"] = ""
    err = refused(shell, "run", "--backend", backend, "--name", "a")
    for part in ("no C compiler", "apt install gcc", "pip install ziglang", "set CC"):
        assert part in err
    for command in (("check", "matmul_bias_relu"), ("doctor", "--gate")):
        assert "apt install gcc" in shell.apart(*command, code=3)[1]
    out, _ = shell.apart("doctor", code=3)
    assert "apt install gcc" in out


@pytest.mark.parametrize("value", variations(["/no/such/cc", "'", "   ", "cc-that-is-not-there -O2", "/", "/dev/null"]))
def test_a_wrong_compiler_variable_is_named(shell: Shell, value: str) -> None:
    if not value.strip() and shutil.which("cc"):
        pytest.skip("an empty variable counts as unset")
    shell.environment["CC"] = value
    err = refused(shell, *RUN)
    assert "CC" in err or "compiler" in err


@pytest.mark.parametrize(("agent", "limit"), [("bandit", 5), ("script:script.json", 20)])
def test_equal_failures_in_a_row_pause_a_run(shell: Shell, agent: str, limit: int) -> None:
    moves = ["use_packed_panels()", "split_k(2)", "split_k(4)", "split_k(8)", "split_k(16)", "apply_tiling(16)"]
    more = [f"{one} + apply_unroll({unroll})" for unroll in (2, 4) for one in moves]
    steps = [{"moves": text, "base": "first"} for text in [*moves, *more, *[f"apply_tiling({n})" for n in (32, 64)]]]
    (shell.folder / "script.json").write_text(json.dumps(steps), encoding="utf-8")
    flags = [] if limit == 20 else ["--set", f"equal_failures={limit}"]
    words = ("run", "--backend", "simulated", "--device", "ridge,build_failed=1", "--name", "a", *flags)
    shell.apart(*words, "--agent", agent)
    session = shell.sessions / "a"
    until(lambda: events(session, ev.PausedByGuard))
    (paused,) = events(session, ev.PausedByGuard)
    assert paused.reason.startswith(f"{limit} candidates in a row ended BuildFailed: ")
    assert "simulated: the surface lets this schedule fail to build" in paused.reason
    assert folded(session).counts["failed"] == limit
    assert "PAUSED" in shell.here("status", "a")
    shell.here("resume", "a")
    if not agent.startswith("script"):  # which has no more to propose
        until(lambda: len(events(session, ev.PausedByGuard)) == 2)
        shell.here("stop", "a")


def test_where_all_that_can_be_tried_fails_the_run_pauses_instead_of_being_done(shell: Shell) -> None:
    words = ("run", "--backend", "simulated", "--device", "ridge,build_failed=1", "--name", "a")
    shell.apart(*words)
    session = shell.sessions / "a"
    until(lambda: events(session, ev.PausedByGuard))
    (paused,) = events(session, ev.PausedByGuard)
    assert "and no other is left: simulated: the surface lets this schedule fail" in paused.reason
    failed = folded(session).counts["failed"]
    assert 3 <= failed < 20
    shell.here("resume", "a")  # as if it had been mended: the same are tried again
    until(lambda: folded(session).counts["failed"] >= 2 * failed)
    shell.here("stop", "a")


FAILS = {
    "names of temporary files": "$(mktemp -u): error: cannot be read (in $PWD, $(mktemp -u /var/tmp/ccXXXXXX.s))",
    "the same words": "kernel.c:3:1: error: target not supported",
    "other lines and addresses": "kernel.c:$$:7: error: internal fault at 0x$$ after $$.5 s",
}


@pytest.mark.cc
@pytest.mark.parametrize("how", variations(FAILS))
def test_a_compiler_that_breaks_while_the_run_goes_on(shell: Shell, how: str) -> None:
    """An update, an expired licence, a lost mount: each candidate fails, only numbers and file names differ."""
    script = '#!/bin/sh\nfor word; do case $word in --version|trifle.c) exec cc "$@";; esac; done\n'
    script += f'[ -e "{shell.folder}/broken" ] || exec cc "$@"\necho "{FAILS[how]}" >&2; exit 1\n'
    compiler(shell, script)
    make_kernel(shell, "", modes=12)
    steps = [(f"set_MODE({mode})", "", 1.0 if mode == 1 else 0.0) for mode in range(1, 12)]
    agent = make_script(shell, *steps)
    words = ("run", "two", "--backend", "cpu", "--name", "a", "--agent", agent, *settings("equal_failures=5"))
    shell.apart(*words)
    session = shell.sessions / "a"
    until(lambda: ended(session) >= 1)
    (shell.folder / "broken").touch()
    until(lambda: events(session, ev.PausedByGuard))
    assert folded(session).counts["failed"] == 5
    assert folded(session).state == "paused"
    (shell.folder / "broken").unlink()
    shell.here("resume", "a")
    count = ended(session)
    until(lambda: any(row.outcome == "Measured" for row in folded(session).rows[count:]))
    assert all(row.again == (row.outcome == "BuildFailed") for row in folded(session).rows[1:6])


@pytest.mark.cc
def test_a_compiler_that_is_gone_ends_the_run_as_the_machines_fault(shell: Shell) -> None:
    path = compiler(shell, '#!/bin/sh\nexec cc "$@"\n')
    make_kernel(shell, "", modes=6)
    agent = make_script(shell, *[(f"set_MODE({mode})", "", 1.0 if mode == 1 else 0.1) for mode in range(1, 6)])
    shell.apart("run", "two", "--backend", "cpu", "--name", "a", "--agent", agent, *settings())
    session = shell.sessions / "a"
    until(lambda: ended(session) >= 1)
    path.unlink()
    until(lambda: events(session, ev.EngineEnded))
    (over,) = events(session, ev.EngineEnded)
    assert (over.state, over.exit_code) == ("failed", 3)
    assert str(path) in over.reason
    assert "install" in over.reason
    assert os.environ.get("CC") is None
    del shell.environment["CC"]
    shell.apart("resume", "a", "--headless", "--candidates", "2")
    assert folded(session).state == "done"
    assert folded(session).effective >= 2
