"""A person's own kernel that doubles a vector, with whatever each setting of its knob MODE is to do besides."""

from __future__ import annotations

from pathlib import Path

from tests.cases.shell import Shell

TOML = """\
title = "TITLE"
template = "kernel.c"
entry = "twice"
reference = "reference.py"
shapes = [{ N = 3000 }]
buffers = [{ name = "x", shape = ["N"] }, { name = "y", shape = ["N"], role = "out" }]

[knobs]
MODE = [MODES]
"""
SOURCE = """\
HEAD
void twice(const int task[3], const float *x, float *y SIZES) {
  MIDDLE
  for (int i = 0; i < N; i++) y[i] = 2.0f * x[i];
}
"""
REFERENCE = "def reference(xp, x):\n    return 2 * x, 2 * abs(x)\n"


def make_kernel(
    shell: Shell, middle: str, head: str = "", modes: int = 4, title: str = "2 x", name: str = "two"
) -> Path:
    """Write ``kernels/two``; MODE 0 is where tuning starts and must be honest."""
    folder = shell.folder / "kernels" / "two"
    folder.mkdir(parents=True)
    numbers = ", ".join(map(str, range(modes)))
    (folder / "kernel.toml").write_text(TOML.replace("TITLE", title).replace("MODES", numbers), encoding="utf-8")
    (folder / "kernel.c").write_text(SOURCE.replace("HEAD", head).replace("MIDDLE", middle), encoding="utf-8")
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    return folder


def settings(*more: str) -> list[str]:
    """Return settings for a run on this processor, beside whatever else it does, that soon ends with its script."""
    words = ("exhausted_rounds=1", "gate_series=4", "sample_ms=1", "guard_refusals=1", *more)
    return [part for word in words for part in ("--set", word)]


def make_script(shell: Shell, *steps: tuple[str, str, float], name: str = "script.toml") -> str:
    """Write an agent's script of (moves, reason, delay); return what --agent takes."""
    lines = []
    for moves, reason, delay in steps:
        quoted = reason.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'[[step]]\nmoves = "{moves}"\nreason = "{quoted}"\ndelay = {delay}\nbase = "first"\n')
    (shell.folder / name).write_text("\n".join(lines), encoding="utf-8")
    return f"script:{name}"
