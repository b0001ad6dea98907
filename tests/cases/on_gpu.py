"""A session on the stand-in GPU: a user's kernel.cu whose launches leave behind what its knobs say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cake_tui.model.row import Row
from tests.backends.gpu_stand_in import HERE, StandIn, stand_in
from tests.cases.shell import Shell
from tests.engine.scripted import folded
from tests.monitors.stand_in import STANDIN

TOML = """
title = "relu(A·B + bias), whatever FAULT leaves behind"
template = "kernel.cu"
entry = "kernel"
reference = "matmul_bias_relu"
shapes = [{{ M = {m}, N = 32, K = 32 }}]
peers = []
[knobs]
{knobs}
[launch]
grid = ["ceil(N / 32)", "{grid_y}"]
block = ["32", "{block_y}"]
"""
SOURCE = 'extern "C" __global__ void kernel(const float *a, const float *b, const float *bias, float *y SIZES) {}\n'


def put_nvml_on_path(shell: Shell, line: str = "") -> None:
    """Have the commands find the stand-in for NVML, as `line` leaves it."""
    folder = shell.folder / "nvml"
    folder.mkdir()
    text = (STANDIN / "pynvml.py").read_text(encoding="utf-8")
    (folder / "pynvml.py").write_text(f"{text}\n\nreset()\n{line}\n", encoding="utf-8")
    shell.environment["PYTHONPATH"] = os.pathsep.join([str(folder), shell.environment["PYTHONPATH"]])


def put_on_path(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Give the shell's commands, and this process, the stand-in GPU."""
    made = stand_in(monkeypatch, shell.folder)
    shell.environment |= made.environment
    shell.environment["PYTHONPATH"] += os.pathsep + str(HERE)
    return made


def make_kernel(shell: Shell, knobs: str, *, m: int = 32, grid_y: str = "ceil(M / 8)", block_y: str = "8") -> None:
    """Write the kernel's folder into the working folder."""
    folder = shell.folder / "kernels" / "faulty"
    folder.mkdir(parents=True)
    text = TOML.format(knobs=knobs, m=m, grid_y=grid_y, block_y=block_y)
    (folder / "kernel.toml").write_text(text, encoding="utf-8")
    (folder / "kernel.cu").write_text(SOURCE, encoding="utf-8")


def run(shell: Shell, candidates: int, *words: str, **environment: str) -> Path:
    """Run it, one knob's values in turn; `candidates` are the effective ones."""
    limits = ("--candidates", str(candidates), "--set", "run_s=1", "--set", "screen=off", "--round", "2")
    shell.apart("run", "faulty", "--backend", "cuda", "--agent", "grid", "--name", "a", *limits, *words, **environment)
    return shell.sessions / "a"


def by_knob(session: Path, knob: str) -> dict[object, Row]:
    """The session's candidates by the value of one knob."""
    return {dict(row.schedule.knobs)[knob]: row for row in folded(session).rows if row.schedule}
