"""Whether barriers name the slot of the ring that they speak of, followed through an agent's steps.

A wait is followed by a use of that slot, an arrive follows one, an expect goes with a copy that completes on it. A
program that breaks this may still be safe by luck (it waits for a later slot than it needs), but does not say what it
means, and one more stage or another order of roles makes it wrong.
"""

from __future__ import annotations

from cake_tui.ir.analysis.agents import Agent
from cake_tui.ir.analysis.steps import Arrive, Await, Clash, Do, Expect, Start, Step


def mismatched_slots(agents: list[Agent], rings: dict[str, int]) -> list[Clash]:
    """Return steps whose barrier slot is not the slot of the ring used with it; `rings` gives each ring's depth."""
    guarded = _guarded(agents, rings)
    found: dict[int, Clash] = {}
    for agent in agents:
        for at, step in enumerate(agent.steps):
            clash = _judge(agent.steps, at, step, guarded)
            if clash is not None:
                found.setdefault(clash.site, clash)
    return list(found.values())


def _guarded(agents: list[Agent], rings: dict[str, int]) -> dict[str, set[str]]:
    """The rings that each barrier array speaks of: those copied on it, else those that waiters and arrivers share."""
    copied: dict[str, set[str]] = {}
    waiting: dict[str, set[str]] = {}
    arriving: dict[str, set[str]] = {}
    for agent in agents:
        used = {touch.buffer for step in agent.steps if isinstance(step, Do | Start) for touch in step.touches}
        used &= rings.keys()
        for step in agent.steps:
            match step:
                case Start(barrier=(name, _), touches=touches):
                    copied.setdefault(name, set()).update(
                        touch.buffer for touch in touches if touch.writes and touch.buffer in rings
                    )
                case Await(barrier=(name, _)):
                    waiting.setdefault(name, set()).update(used)
                case Arrive(barrier=(name, _)):
                    arriving.setdefault(name, set()).update(used)
    return {
        name: copied.get(name) or waiting.get(name, set()) & arriving.get(name, set())
        for name in copied.keys() | waiting.keys() | arriving.keys()
    }


def _judge(steps: list[Step], at: int, step: Step, guarded: dict[str, set[str]]) -> Clash | None:
    match step:
        case Await(barrier=(name, slot)):
            ahead = _until(steps[at + 1 :], Await, name)
            return _unless_used(step, name, slot, ahead, guarded)
        case Arrive(barrier=(name, slot)):
            back = _until(steps[:at][::-1], Arrive, name, slot)
            return _unless_used(step, name, slot, back, guarded)
        case Expect(barrier=(name, slot)):
            near = _until(steps[at + 1 :], Expect, name) + _until(steps[:at][::-1], Expect, name)
            copies = [
                other for other in near if isinstance(other, Start) and other.barrier and other.barrier[0] == name
            ]
            if copies and all(other.barrier != (name, slot) for other in copies):
                return Clash("slot", step.site, copies[0].site, name, ((slot, slot),))
        case Start(barrier=(name, slot), touches=touches):
            for touch in touches:
                ring = touch.writes and touch.buffer in guarded.get(name, ())
                if ring and not touch.box[0][0] <= slot <= touch.box[0][1]:
                    return Clash("slot", step.site, None, name, ((slot, slot),))
    return None


def _until(steps: list[Step], kind: type[Step], name: str, slot: int | None = None) -> list[Step]:
    """The steps before the next one of a kind on the same barrier (and slot)."""
    taken: list[Step] = []
    for step in steps:
        barrier = getattr(step, "barrier", None)
        if isinstance(step, kind) and barrier and barrier[0] == name and slot in (None, barrier[1]):
            break
        taken.append(step)
    return taken


def _unless_used(step: Step, name: str, slot: int, near: list[Step], guarded: dict[str, set[str]]) -> Clash | None:
    """A clash where rings of the barrier are used near the step, but never the slot that it names."""
    rings = guarded.get(name, set())
    slots = [
        touch.box[0]
        for other in near
        if isinstance(other, Do | Start)
        for touch in other.touches
        if touch.buffer in rings
    ]
    if slots and not any(low <= slot <= high for low, high in slots):
        return Clash("slot", step.site, None, name, ((slot, slot),))
    return None
