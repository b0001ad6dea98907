"""A block's shared memory, barriers included, fits the device; on ``c`` a task's panels fit the outermost cache."""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.model.diagnostic import Diagnostic

NAME = "shared-memory"


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield launches that ask for more than there is, with the figures."""
    device = subject.device
    if device is None:
        return
    on_c = subject.program.target == "c"
    available = (device.l3_bytes or device.l2_bytes) if on_c else device.smem_per_block_bytes
    if not available:
        return
    for index in range(len(subject.program.launches)):
        asked = subject.smem_bytes(index)
        if asked <= available:
            continue
        largest = max(subject.declares(index, "shared"), key=lambda item: subject.size_bytes(item[1]))
        yield subject.refuse(
            NAME,
            largest[0],
            f"{asked} bytes of shared memory a {'task' if on_c else 'block'}",
            f"at most {available}",
            nearest=_fewer(subject, index, available),
            limit="l3_bytes" if on_c else "max_smem_limit",
            asked=float(asked),
            available=float(available),
            unit="bytes",
        )


def _fewer(subject: Subject, index: int, available: int) -> str | None:
    """The greatest depth of all rings together that would fit, where rings take most of it."""
    ring = sum(subject.size_bytes(item) for _, item in subject.declares(index, "shared") if item.ring)
    depths = {subject.shape(item)[0] for _, item in subject.declares(index, "shared") if item.ring}
    if not ring or len(depths) != 1:
        return None
    depth = depths.pop()
    fits = (available - (subject.smem_bytes(index) - ring)) * depth // ring
    return f"{fits} slots instead of {depth}" if fits >= 1 else None


PLUGIN: Law = Law(NAME, check)
