"""Lines for people: broken at words on a terminal, whole in a pipe."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def on_a_terminal(command: list[str], folder: Path, columns: int) -> str:
    keeper, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    child = subprocess.Popen(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdin=terminal, stdout=terminal
    )
    os.close(terminal)
    shown = b""
    try:
        while piece := os.read(keeper, 65536):
            shown += piece
    except OSError:  # the other end has gone
        pass
    os.close(keeper)
    assert child.wait(60) == 0
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("words", [(), ("show", "example-cpu-512"), ("tail", "example-cpu-512", "-n", "9")])
def test_long_lines_break_between_words_on_a_terminal_and_stay_whole_in_a_pipe(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions/example-cpu-512").symlink_to(ROOT / "sessions/example-cpu-512")
    command = [sys.executable, "-m", "cake_tui", *words]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "60"}
    whole = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True).stdout
    assert max(map(len, whole.splitlines())) > 60
    for columns in (60, 200):
        shown = on_a_terminal(command, tmp_path, columns)
        assert shown.split() == whole.split()
        assert all(len(line) <= columns or len(line.split()) == 1 for line in shown.splitlines())
    assert on_a_terminal(command, tmp_path, 1000) == whole
