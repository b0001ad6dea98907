"""Registers that a launch's register buffers need, a thread, by role."""

from __future__ import annotations

import math

from cake_tui.ir import program as ir
from cake_tui.ir.laws._subject import Subject
from cake_tui.ir.program import DTYPE_BYTES, Buffer
from cake_tui.ir.walk import Path

ADDRESSES = 24  # what indices, pointers and loop counters of a kernel take besides, from compiled kernels of this kind


def registers_of(subject: Subject, index: int) -> dict[str, int]:
    """Return 32-bit registers a thread for each role that holds buffers ("" without roles), addresses included.

    A buffer lives to the end of its block of statements: what is alive at once is the largest sum along one path.
    """
    alive: dict[str, list[tuple[Path, int]]] = {}
    for path, buffer in subject.declares(index, "register"):
        role = subject.role_of(path)
        owner = buffer.owner or (role[0] if role else "")
        words = words_of(subject, buffer, subject.executors(path, owner))
        alive.setdefault(owner, []).append((path[:-1], words))
    found = {}
    for owner, buffers in alive.items():
        deepest = max(sum(words for other, words in buffers if other == block[: len(other)]) for block, _ in buffers)
        found[owner] = deepest + ADDRESSES
    return found


def words_of(subject: Subject, buffer: Buffer, threads: int) -> int:
    """Return the 32-bit registers that each thread spends on a buffer; one without a spread is held by every thread."""
    elements = math.prod(subject.shape(buffer))
    match buffer.spread:
        case ir.Threads(each=each):
            elements = math.prod(subject.number(count) for count in each)
        case ir.Fragment():
            elements = -(-elements // max(1, threads))
    return -(-elements * DTYPE_BYTES[buffer.dtype] // 4)
