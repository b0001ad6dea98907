"""A problem, a device and actions.toml texts for the tests of the menu."""

from __future__ import annotations

from pathlib import Path

from cake_tui import kernels, menu
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import Problem

CPU = Device(
    kind="cpu", target="c", name="a CPU", uuid="cpu:test", arch="x86-64-v4", cores=2,
    vector_bytes=64, vector_registers=32,
)  # fmt: skip
GPU = Device(kind="cuda", target="cuda", name="a GPU", uuid="GPU-test", arch="sm_90a", cores=132, capability=90)

ACTIONS = """\
# the menu
[[action]]
name = "apply_tiling"          # by k
level = "micro"
summary = "Work on a block of k"
edits = [{ do = "tiling", tile_size = "$tile_size" }]
parameters.c = { tile_size = [16, 32, 64] }
parameters.cuda = { tile_size = [8, 16] }

[[action]]
name = "apply_register_block"
level = "micro"
summary = "Keep an m x n block in registers"
edits = [{ do = "register_block", m = "$m", n = "$n" }]
parameters.c = { m = [4, 8], n = { values = [1, 2], about = "vectors" } }
hints = ["spills"]

[[action]]
name = "use_packed_panels"
level = "macro"
summary = "Pack"
edits = [{ do = "change_structure", structure = "packed" }]
targets = ["c"]

[[action]]
name = "revert_last"
level = "macro"
summary = "Go back"
edits = [{ do = "revert_last" }]
"""


def problem(target: Target = "c") -> Problem:
    return kernels.load("matmul_bias_relu", target=target)


def menu_of(text: str, folder: Path, device: Device = CPU) -> menu.Menu:
    path = folder / "actions.toml"
    path.write_text(text, encoding="utf-8")
    return menu.load(path, problem(device.target), device)
