"""Kernels are folders: kernel.toml, a reference where one is needed, a user's own kernel file where there is one."""

from cake_tui.kernels.folders import check_name, find, names
from cake_tui.kernels.new import around, copy_of
from cake_tui.kernels.shapes import override
from cake_tui.kernels.source import Kernel, OtherTarget, load, read, refuse_mistakes

__all__ = [
    "Kernel",
    "OtherTarget",
    "around",
    "check_name",
    "copy_of",
    "find",
    "load",
    "names",
    "override",
    "read",
    "refuse_mistakes",
]
