"""Builds: from the store, in parallel, within limits that end whole groups, with logs of any size."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cake_tui.errors import ENVIRONMENT, UserError
from cake_tui.executors.local import Local
from cake_tui.model.jobs import (
    BuildJob,
    Built,
    NotBuilt,
    binary_path,
)
from tests.executors.doubling import GOOD, alive, build_one, check, lowered, wait_until

pytestmark = pytest.mark.cc


def test_equal_builds_share_one_binary_and_the_store_answers_later_ones(executor: Local, tmp_path: Path) -> None:
    jobs = [BuildJob(lowered(GOOD), "full"), BuildJob(lowered(GOOD), "smoke"), BuildJob(lowered(GOOD, ("-O2",)))]
    replies = dict(executor.build(jobs))
    assert all(isinstance(reply, Built) and not reply.cached for reply in replies.values())
    assert replies[0] == replies[1]
    again = dict(executor.build(jobs))
    for position, reply in again.items():
        assert isinstance(reply, Built)
        assert reply.cached
        assert reply.binary_sha256 == replies[position].binary_sha256  # type: ignore[union-attr]
        assert reply.facts.code_bytes


def test_damaged_binary_in_the_store_is_built_again(executor: Local) -> None:
    subject = build_one(executor, GOOD)
    binary_path(executor.store, subject.binary_sha256).write_bytes(b"torn")
    [(_, reply)] = list(executor.build([BuildJob(subject.lowered)]))
    assert isinstance(reply, Built)
    assert not reply.cached
    assert type(executor.evaluate(check(subject), 30.0)).__name__ == "Checked"


def test_compiler_error_is_a_reply_with_its_first_line(executor: Local) -> None:
    replies = dict(executor.build([BuildJob(lowered("void entry( {\n")), BuildJob(lowered(GOOD))]))
    assert isinstance(replies[0], NotBuilt)
    assert "kernel.c:1" in replies[0].reason
    assert "error" in replies[0].reason
    assert replies[0].log_bytes == len(replies[0].log.encode()) > 0
    assert isinstance(replies[1], Built)


def test_long_log_keeps_head_tail_and_true_size(executor: Local, compiler: Callable[[str], None]) -> None:
    compiler("echo first line; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo 'error: the last line'; exit 1\n")
    [(_, reply)] = list(executor.build([BuildJob(lowered(GOOD))]))
    assert isinstance(reply, NotBuilt)
    assert reply.log_bytes == len("first line\n") + 3_000_000 + len("\nerror: the last line\n")
    assert reply.log.startswith("first line")
    assert reply.log.endswith("error: the last line\n")
    assert "bytes left out" in reply.log
    assert len(reply.log) < 40_000


def test_binary_output_of_a_compiler_becomes_text(executor: Local, compiler: Callable[[str], None]) -> None:
    compiler("printf '\\377\\376error\\000'; exit 1\n")
    [(_, reply)] = list(executor.build([BuildJob(lowered(GOOD))]))
    assert isinstance(reply, NotBuilt)
    assert "error" in reply.log
    assert reply.log_bytes == 8


@pytest.mark.parametrize("stubborn", [False, True], ids=["obeys", "ignores-SIGTERM"])
def test_compiler_past_its_limit_is_ended_with_all_its_children(
    executor: Local, compiler: Callable[[str], None], tmp_path: Path, stubborn: bool
) -> None:
    trap = "trap '' TERM\n" if stubborn else ""
    pids = tmp_path / "pids"
    compiler(f"{trap}sleep 300 & echo $! >> {pids}; echo $$ >> {pids}\nwhile :; do sleep 0.1; done\n")
    began = time.monotonic()
    [(_, reply)] = list(executor.build([BuildJob(lowered(GOOD), timeout_s=0.3)]))
    assert isinstance(reply, NotBuilt)
    assert reply.timed_out
    assert "0.3 s" in reply.reason
    assert time.monotonic() - began < 10.0
    left = [int(pid) for pid in pids.read_text().split()]
    assert len(left) == 2
    assert wait_until(lambda: not any(map(alive, left)))
    assert not list((executor.store / "building").iterdir())


def test_compilers_at_once_never_share_their_intermediate_files(
    executor: Local, compiler: Callable[[str], None], tmp_path: Path
) -> None:
    """As Zig's does, this one keeps the preprocessed source in its cache folder under the source's name."""
    compiler(
        f"cache=${{ZIG_LOCAL_CACHE_DIR:-{tmp_path}}}\ncp kernel.c $cache/between.c; sleep 0.3\n"
        'for word; do shift; [ "$word" = kernel.c ] && word=$cache/between.c; set -- "$@" "$word"; done\n'
        'exec cc "$@"\n'
    )
    executor.parallel = 2
    jobs = [BuildJob(lowered(GOOD.replace("2 *", f"{factor} *"))) for factor in (2, 3)]
    replies = [reply for _, reply in executor.build(jobs)]
    assert all(isinstance(reply, Built) for reply in replies), replies
    assert len({reply.binary_sha256 for reply in replies if isinstance(reply, Built)}) == 2


def test_compiler_that_writes_nothing_is_a_failed_build(executor: Local, compiler: Callable[[str], None]) -> None:
    compiler("exit 0\n")
    [(_, reply)] = list(executor.build([BuildJob(lowered(GOOD))]))
    assert isinstance(reply, NotBuilt)
    assert "no binary" in reply.reason


def test_missing_compiler_is_an_environment_error_that_says_what_to_install(
    executor: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(UserError, match=r"no-such-compiler.*install gcc") as caught:
        list(executor.build([BuildJob(lowered(GOOD))]))
    assert caught.value.exit_code == ENVIRONMENT


def test_what_the_wait_hook_raises_ends_the_compilers_and_travels_on(
    executor: Local, compiler: Callable[[str], None], tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    compiler(f"echo $$ >> {pids}\nexec sleep 300\n")

    def wait() -> None:
        if pids.exists() and len(pids.read_text().split()) == 2:
            raise InterruptedError

    jobs = [BuildJob(lowered(GOOD, (f"-DX={i}",))) for i in range(2)]
    executor.parallel = 2
    with pytest.raises(InterruptedError):
        list(executor.build(jobs, wait))
    assert wait_until(lambda: not any(alive(int(pid)) for pid in pids.read_text().split()))


def test_source_and_paths_outside_ascii_build_whatever_the_locale(tmp_path: Path) -> None:
    script = f"""
        import os, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from pathlib import Path
        from tests.executors.doubling import *
        with Local("cpu", Path({str(tmp_path)!r}) / os.fsdecode("Größe-µ".encode()), PLUGIN.devices()[0]) as executor:
            subject = build_one(executor, "/* Größe in µs, 中文 */\\n" + GOOD)
            assert type(executor.evaluate(check(subject), 30.0)).__name__ == "Checked"
    """
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    (tmp_path / "script.py").write_text(textwrap.dedent(script), encoding="utf-8")
    done = subprocess.run([sys.executable, tmp_path / "script.py"], env=env, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
