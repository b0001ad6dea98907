"""Files that may not be read or written, as another user's sessions: one line, and no trouble for the others."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases.shell import Shell

# Whoever may do everything gives that up first.
NO_RIGHTS = "-dac_override,-dac_read_search"
DROP = ["setpriv", f"--bounding-set={NO_RIGHTS}", f"--inh-caps={NO_RIGHTS}"] if os.getuid() == 0 else []
pytestmark = pytest.mark.skipif(bool(DROP) and shutil.which("setpriv") is None, reason="root needs setpriv for it")


def plainly(shell: Shell, *words: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [*DROP, *shell.words(*words)], cwd=shell.folder, env=shell.environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def two(shell: Shell) -> Iterator[Path]:
    session = shell.headless("a", candidates=2)
    shutil.copytree(session, shell.sessions / "other")
    yield session
    for path in (shell.folder, shell.sessions, *shell.sessions.rglob("*")):
        if path.exists():
            path.chmod(0o700)


@pytest.mark.parametrize("which", ["", "journal.jsonl"])
def test_a_session_that_may_not_be_read_is_named_and_hides_no_other(shell: Shell, two: Path, which: str) -> None:
    (two / which).chmod(0)
    for words in (("show", "a"), ("resume", "a"), ("resume", "a", "--headless")):
        code, out, err = plainly(shell, *words)
        assert (code, out, err.count("\n")) == (3, "", 1), err
        assert "a/journal.jsonl: permission denied; ask its owner" in err
    for words in (("list",), ("status",), ()):
        code, out, err = plainly(shell, *words)
        assert code == 0
        assert "a  not readable: " in out + err
        assert "other" in out
    code, _, err = plainly(shell, "run", "--backend", "simulated", "--name", "a", "--headless")
    assert (code in (2, 3), err.count("\n")) == (True, 1)
    assert "a bug" not in err


def test_a_session_that_may_only_be_read_is_looked_at_and_exported(shell: Shell, two: Path) -> None:
    for path in (two, *two.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)
    for words in (("show", "a"), ("tail", "a"), ("attach", "a"), ("export", "a", "--allow-simulated")):
        assert plainly(shell, *words)[0] == 0
    code, _, err = plainly(shell, "resume", "a", "--candidates", "9")
    assert (code, err.count("\n")) == (3, 1)
    assert "permission denied" in err
