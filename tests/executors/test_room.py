"""Where the disk is full: builds wait and are done again; nothing that a killed compiler wrote stays anywhere."""

from __future__ import annotations

import errno
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from cake_tui.executors.local import Local
from cake_tui.model.jobs import BuildJob, Built, NotBuilt
from tests.executors.doubling import GOOD, lowered

pytestmark = pytest.mark.cc


def test_a_compiler_that_found_no_space_is_run_again_and_no_other(
    executor: Local, compiler: Callable[[str], None], tmp_path: Path
) -> None:
    waited: list[tuple[str, int | None]] = []

    def on_full(path: Path, size: int, error: OSError) -> None:
        waited.append((path.name, error.errno))
        (tmp_path / "room").touch()

    compiler(
        f'[ -e "{tmp_path}/room" ] && exec cc "$@"\n'
        'echo "/tmp/cc1.s: error: Disk quota exceeded" >&2; exit 1\n'
    )  # fmt: skip
    [(_, reply)] = list(executor.build([BuildJob(lowered(GOOD))]))
    assert isinstance(reply, NotBuilt)  # nobody is there who waits
    executor.wait_for_room(on_full)
    [(_, reply)] = list(executor.build([BuildJob(lowered(GOOD))]))
    assert isinstance(reply, Built)
    assert waited == [("kernel.so", errno.ENOSPC)]
    compiler('echo "kernel.c:1: error: No space left on device, says the source" >&2; exit 1\n')
    [(_, reply)] = list(executor.build([BuildJob(lowered(GOOD + "// other\n"))]))
    assert isinstance(reply, NotBuilt)  # beside so much free space it is the candidate's own failure
    assert len(waited) == 1


def test_a_binary_that_finds_no_space_is_written_when_there_is_some(executor: Local) -> None:
    waited: list[str] = []
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def on_full(path: Path, size: int, error: OSError) -> None:
        waited.append(path.suffix)
        assert size > 1000
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert list(executor.build([BuildJob(lowered(GOOD))]))  # the compiler is known from here on
    executor.wait_for_room(on_full)
    found = executor.build([BuildJob(lowered(GOOD + f"// {'x' * 4000}\n"))])
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        [(_, reply)] = list(found)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert isinstance(reply, Built)
    assert waited == [".c"]


def test_a_killed_compiler_leaves_nothing_in_the_machines_temporary_folder(
    executor: Local, compiler: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = tmp_path / "machine"
    machine.mkdir()
    monkeypatch.setenv("TMPDIR", str(machine))
    compiler("trap '' TERM; mktemp >/dev/null; touch $TMPDIR/cc1.s; while :; do sleep 0.05; done\n")
    [(_, reply)] = list(executor.build([BuildJob(lowered(GOOD), "full", 0.3)]))
    assert isinstance(reply, NotBuilt)
    assert reply.timed_out
    assert list(machine.iterdir()) == []
    assert list((executor.store / "building").iterdir()) == []
