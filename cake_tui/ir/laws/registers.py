"""What a thread holds in registers fits: the device's limit, the share of its threads, and a role's own budget.

On ``c`` one register tile larger than twice the vector registers can only live in memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from cake_tui.ir import program as ir
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._registers import ADDRESSES, registers_of
from cake_tui.ir.laws._subject import Subject
from cake_tui.ir.program import DTYPE_BYTES, WARP
from cake_tui.model.device import Device
from cake_tui.model.diagnostic import Diagnostic

NAME = "registers"


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield launches and roles that need more registers than they can have, with the figures."""
    device = subject.device
    if subject.program.target == "c":
        if device is not None and device.vector_registers and device.vector_bytes:
            yield from _vectors(subject, device)
        return
    for index, launch in enumerate(subject.program.launches):
        needed = registers_of(subject, index)
        budgets = _budgets(subject, index)
        threads = subject.threads(launch)
        for owner, count in needed.items():
            budget = budgets.get(owner)
            limit, available = _available(device, threads, budget)
            # The addresses are a guess: refused is what cannot fit even with fewer of them.
            if available and count - ADDRESSES // 2 > available:
                path = _largest(subject, index, owner)
                yield subject.refuse(
                    NAME,
                    path,
                    f"{count} registers a thread{f' in {owner}' if owner else ''}",
                    f"at most {available}",
                    limit=limit,
                    asked=float(count),
                    available=float(available),
                    unit="registers",
                )
        yield from _file(subject, index, budgets, device)


def _budgets(subject: Subject, index: int) -> dict[str, int]:
    return {
        statement.name: statement.registers
        for path, statement in subject.sites
        if path[0] == index and isinstance(statement, ir.WarpRole) and statement.registers is not None
    }


def _available(device: Device | None, threads: int, budget: int | None) -> tuple[str, int]:
    if budget is not None:
        return "registers_of_role", budget
    if device is None:
        return "", 0
    limits = [("registers_per_thread", device.registers_per_thread)]
    if device.registers_per_sm and threads:
        limits.append(("registers_per_sm", device.registers_per_sm // (-(-threads // WARP) * WARP) // 8 * 8))
    known = [limit for limit in limits if limit[1]]
    return min(known, key=lambda limit: limit[1]) if known else ("", 0)


def _file(subject: Subject, index: int, budgets: dict[str, int], device: Device | None) -> Iterator[Diagnostic]:
    """Budgets of all roles together against the register file of a block."""
    if not budgets or device is None or not device.registers_per_sm:
        return
    threads = subject.role_threads(index)
    if budgets.keys() != threads.keys():
        return
    asked = sum(budgets[name] * threads[name] for name in budgets)
    if asked > device.registers_per_sm:
        name = max(budgets, key=lambda role: budgets[role] * threads[role])
        path = next(
            path
            for path, item in subject.sites
            if path[0] == index and isinstance(item, ir.WarpRole) and item.name == name
        )
        others = asked - budgets[name] * threads[name]
        fits = (device.registers_per_sm - others) // threads[name] // 8 * 8
        yield subject.refuse(
            NAME,
            path,
            f"{asked} registers in all roles",
            f"at most {device.registers_per_sm}",
            nearest=str(max(24, fits)),
            limit="registers_per_sm",
            asked=float(asked),
            available=float(device.registers_per_sm),
            unit="registers",
        )


def _largest(subject: Subject, index: int, owner: str) -> tuple[int, ...]:
    found = []
    for path, buffer in subject.declares(index, "register"):
        role = subject.role_of(path)
        if owner in (buffer.owner, role[0] if role else ""):
            found.append((subject.size_bytes(buffer), path))
    return max(found)[1]


def _vectors(subject: Subject, device: Device) -> Iterator[Diagnostic]:
    for index in range(len(subject.program.launches)):
        for path, buffer in subject.declares(index, "register"):
            if not isinstance(buffer.spread, ir.Lanes):
                continue
            shape = subject.shape(buffer)
            lanes = subject.number(buffer.spread.count)
            asked = (
                math.prod(shape[:-1])
                * -(-shape[-1] // lanes)
                * -(-lanes * DTYPE_BYTES[buffer.dtype] // device.vector_bytes)
            )
            available = 2 * device.vector_registers
            if asked > available:
                yield subject.refuse(
                    NAME,
                    path,
                    f"{asked} vector registers for {buffer.name}",
                    f"at most {available}, twice what the core has",
                    limit="vector_registers",
                    asked=float(asked),
                    available=float(device.vector_registers),
                    unit="vector registers",
                )


PLUGIN: Law = Law(NAME, check)
