"""Phase barriers: which of them let their first waits through because all slots start empty."""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir.program import Arrive, Copy, Declare, Expect, Launch, Role, Statement, Wait
from cake_tui.ir.walk import reads, walk_body, writes


def starts_open(launch: Launch, name: str) -> bool:
    """Whether the n-th wait of a role on a slot needs n - 1 finished phases (else n).

    A barrier that copies complete on, or that announces bytes, starts closed. Of the others those start closed whose
    arriving roles write shared memory that a waiting role reads: they say "full". What is left says "free", and at
    the start every slot is. One on which nobody arrives never opens.
    """
    shared = frozenset(
        statement.buffer.name
        for statement in walk_body(launch.body)
        if isinstance(statement, Declare) and statement.buffer.space == "shared"
    )
    written: set[str] = set()
    read: set[str] = set()
    arrives = False
    for body in _bodies(launch.body):
        around = list(_around(body, name))
        for kind, statements in around:
            if kind == "complete":
                return False
            for statement in statements:
                arrives = arrives or kind == "arrive"
                if kind == "arrive":
                    written |= {ref.buffer for ref in writes(statement)}
                else:
                    read |= {ref.buffer for ref in reads(statement)}
    return arrives and not written & read & shared


def _bodies(body: tuple[Statement, ...]) -> Iterator[tuple[Statement, ...]]:
    """The bodies of roles, and what stands outside of them."""
    roles = [statement for statement in walk_body(body) if isinstance(statement, Role)]
    yield from (role.body for role in roles)
    yield tuple(statement for statement in body if not isinstance(statement, Role))


def _around(body: tuple[Statement, ...], name: str) -> Iterator[tuple[str, tuple[Statement, ...]]]:
    """For each use of the barrier: how it is used, and the statements of the body where it stands."""
    inside = tuple(walk_body(body))
    for statement in inside:
        match statement:
            case Expect(barrier=barrier) if barrier == name:
                yield "complete", ()
            case Copy(completes=completes) if completes and completes.kind == "barrier" and completes.name == name:
                yield "complete", ()
            case Arrive(barrier=barrier) if barrier == name:
                yield "arrive", inside
            case Wait(barrier=barrier) if barrier == name:
                yield "wait", inside
            case _:
                continue
