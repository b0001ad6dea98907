"""Turns one block of a launch into the machine's agents: roles become agents, loops are walked on known numbers.

Loops with synchronisation or rings inside are walked iteration by iteration (`laps` says which of a long one), other
loops taken at once, their variable a span. Branches that the numbers do not decide are taken both ways.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from cake_tui.ir import program as ir
from cake_tui.ir.analysis.agents import Agent
from cake_tui.ir.analysis.alone import orders, unwritten
from cake_tui.ir.analysis.barriers import starts_open
from cake_tui.ir.analysis.boxes import Reach, empty
from cake_tui.ir.analysis.forms import Unbounded
from cake_tui.ir.analysis.intervals import span_of
from cake_tui.ir.analysis.laps import walked
from cake_tui.ir.analysis.machine import Machine
from cake_tui.ir.analysis.slots import mismatched_slots
from cake_tui.ir.analysis.spans import boxes_of, moduli, named_spans, names_deciding, narrow, truth
from cake_tui.ir.analysis.steps import (
    Arrive,
    Await,
    Clash,
    Commit,
    Do,
    Drain,
    Expect,
    Fence,
    Forget,
    Meet,
    Start,
    Step,
    Touch,
    Who,
)
from cake_tui.ir.expr import Expr, Number, Ref, names_in, refs_in
from cake_tui.ir.program import WARP, Buffer, Launch, Statement
from cake_tui.ir.walk import Path, children, reads, walk_body, writes

MOST_STEPS = 20_000  # of all agents together; what would come behind is not looked at


class Block:
    """Blocks of a launch with known sizes: `clashes(places)` runs one of them."""

    def __init__(
        self,
        launch: Launch,
        index: int,
        buffers: dict[str, Buffer],
        spans: dict[str, Reach],
        sites: dict[Path, int],
    ) -> None:
        self.launch = launch
        self.index = index
        self.spans = spans  # sizes and constants, and of the block that runs its grid axes
        self.sites = sites
        self.buffers = dict(buffers)
        self.roles: dict[str, ir.WarpRole] = {}
        self.single: set[str] = set()  # roles of which one warp runs
        self.barriers: dict[str, ir.Barrier] = {}
        self.slots: dict[str, int] = {}
        for statement in walk_body(launch.body):
            match statement:
                case ir.Declare(buffer):
                    self.buffers[buffer.name] = buffer
                case ir.WarpRole(name=name):
                    self.roles[name] = statement
                case ir.Role(name=name, who="one warp"):
                    self.single.add(name)
                case ir.Barrier(name=name, slots=slots):
                    self.barriers[name] = statement
                    self.slots[name] = max(1, self._number(slots))
        self.open = {name: starts_open(launch, name) for name in self.barriers}
        self.threads = max(1, self._number(launch.threads))
        # One thread whose statements end when they are left: nothing that a barrier or a wait could order.
        ordered = self.threads == 1 and not self.roles and not self.barriers
        self.alone = ordered and not any(orders(statement) for statement in walk_body(launch.body))
        self.agents: dict[str, Agent] = {}
        self.waits: dict[tuple[str, str, int], int] = {}
        self.period = 0  # not worked out yet: only loops that are walked ask
        self.refs: dict[int, tuple[tuple[Ref, ...], tuple[Ref, ...], frozenset[str]]] = {}
        # Most iterations and branches leave the range of a loop and the elements of a statement where they were.
        self.ranges: dict[tuple[object, ...], tuple[Reach, Reach, int]] = {}
        self.touched: dict[tuple[object, ...], tuple[Touch, ...]] = {}
        self.walked: dict[Path, bool] = {}
        self.bounds: dict[Path, frozenset[str]] = {}  # names that a loop's range depends on

    def clashes(self, places: Iterable[Mapping[str, Reach]]) -> list[Clash]:
        """Run a block at each place in turn, one or the tiles of a persistent one; return what the machine found."""
        self.agents, self.waits = {}, {}
        if self.roles:
            for name, role in self.roles.items():
                warps = 1 if name in self.single else self._number(role.last) - self._number(role.first) + 1
                self.agents[name] = Agent(name, max(1, warps) * WARP, [])
        else:
            self.agents[""] = Agent("", self.threads, [])
        for place in places:
            self.spans, self.period = {**self.spans, **place}, 0
            self._body(self.launch.body, (self.index,), self.spans, None, Who.ALL)
        if self.alone:
            return unwritten(self.agents[""].steps)
        arrivals = {name: max(1, self._number(barrier.arrivals)) for name, barrier in self.barriers.items()}
        order = sorted(self.agents.values(), key=lambda agent: not any(isinstance(step, Start) for step in agent.steps))
        return Machine(order, arrivals).run() + mismatched_slots(order, self._rings())

    def _rings(self) -> dict[str, int]:
        """Depth of every shared ring."""
        return {
            name: self._number(buffer.shape[0])
            for name, buffer in self.buffers.items()
            if buffer.ring and buffer.space == "shared" and buffer.shape
        }

    def _number(self, expr: Expr) -> int:
        return span_of(expr, self.spans)[1]

    def _period(self) -> int:
        """After how many iterations slots, phases and remainders are as before."""
        period = 1
        for statement in walk_body(self.launch.body):
            if isinstance(statement, ir.For) and statement.stages is not None:
                period = math.lcm(period, max(1, self._number(statement.stages)), max(1, self._number(statement.step)))
            period = math.lcm(period, *moduli((*reads(statement), *writes(statement)), self.spans))
            if isinstance(statement, ir.If):
                period = math.lcm(period, *moduli((statement.condition,), self.spans))
        for buffer in self.buffers.values():
            if buffer.ring and buffer.space != "register":
                period = math.lcm(period, max(1, self._number(buffer.shape[0])))
        for slots in self.slots.values():
            period = math.lcm(period, slots)
        return period

    # -- control ------------------------------------------------------------------------------------------------

    def _body(
        self, body: tuple[Statement, ...], path: Path, spans: dict[str, Reach], role: str | None, who: Who
    ) -> None:
        for at, statement in enumerate(body):
            self._statement(statement, (*path, at), spans, role, who)

    def _statement(self, statement: Statement, path: Path, spans: dict[str, Reach], role: str | None, who: Who) -> None:
        if self.alone and type(statement) in _PLAIN:
            site = self.sites[path]
            self.agents[""].steps.append(Do(site, who, self._touches(statement, site, spans)))
            return
        match statement:
            case ir.Role(name=name, body=body, who=mode):
                if name in self.agents:
                    self._body(body, path, spans, name, Who.ONE if mode == "one thread" else Who.ALL)
            case ir.For():
                self._loop(statement, path, spans, role, who)
            case ir.If():
                decided = truth(statement.condition, spans)
                for step, child in children(statement):
                    if decided is None or decided == (step >= 0):
                        cut = narrow(spans, statement.condition) if step >= 0 else spans
                        self._statement(child, (*path, step), cut, role, who)
            case ir.Barrier() | ir.WarpRole():
                pass
            case _:
                site = self.sites[path]
                for made in self._steps(statement, site, spans, role, who):
                    for name in self._executors(statement, role):
                        self.agents[name].steps.append(self._counted(made, name) if isinstance(made, Await) else made)

    def _executors(self, statement: Statement, role: str | None) -> tuple[str, ...]:
        if role is not None:
            return (role,)
        if isinstance(statement, ir.Declare) and statement.buffer.owner in self.agents:
            return (statement.buffer.owner,)
        every = tuple(self.agents)
        return every if isinstance(statement, (ir.Sync, ir.Wait, ir.Fence, ir.Arrive)) else every[:1]

    def _counted(self, step: Await, agent: str) -> Await:
        name, slot = step.barrier
        count = self.waits.get((agent, name, slot), 0) + 1
        self.waits[agent, name, slot] = count
        return Await(step.site, step.who, step.barrier, count - self.open[name])

    def _loop(self, loop: ir.For, path: Path, spans: dict[str, Reach], role: str | None, who: Who) -> None:
        start, stop, step = self._range(loop, path, spans)
        if path not in self.walked:
            self.walked[path] = self._walked(loop)
        if not self.walked[path]:
            last = start[1] + (stop[1] - 1 - start[1]) // step * step
            if last >= start[0]:
                self._body(loop.body, path, {**spans, loop.variable: (start[0], last)}, role, who)
            return
        self.period = self.period or self._period()
        whole = math.lcm(self.period, step)
        for value in walked(loop, range(start[0], stop[1], step), whole, spans):
            if sum(len(agent.steps) for agent in self.agents.values()) > MOST_STEPS:
                return
            self._body(loop.body, path, {**spans, loop.variable: (value, value)}, role, who)

    def _range(self, loop: ir.For, path: Path, spans: dict[str, Reach]) -> tuple[Reach, Reach, int]:
        """Where a loop starts and stops, and its step."""
        names = self.bounds.get(path)
        if names is None:
            names = self.bounds[path] = names_in(loop.start) | names_in(loop.stop) | names_in(loop.step)
        key = (path, *[spans.get(name) for name in names])
        found = self.ranges.get(key)
        if found is None:
            try:
                step = max(1, span_of(loop.step, spans)[1])
                found = span_of(loop.start, spans), span_of(loop.stop, spans), step
            except Unbounded:
                found = (0, 0), (0, 1), 1
            self.ranges[key] = found
        return found

    def _walked(self, loop: ir.For) -> bool:
        """Whether iterations must be told apart."""
        if loop.stages is not None:
            return True
        rings = any(buffer.ring for buffer in self.buffers.values())
        for statement in walk_body(loop.body):
            if not self.alone and orders(statement):
                return True
            if type(statement) is ir.If and loop.variable in names_in(statement.condition):
                return True
            for ref in (*reads(statement), *writes(statement)) if rings else ():
                buffer = self.buffers.get(ref.buffer)
                if buffer and buffer.ring and ref.indices and _mentions(ref, loop.variable):
                    return True
        return False

    # -- statements ---------------------------------------------------------------------------------------------

    def _steps(
        self, statement: Statement, site: int, spans: dict[str, Reach], role: str | None, who: Who
    ) -> Iterator[Step]:
        match statement:
            case ir.Copy(kind="copy") | ir.Assign() | ir.Split() | ir.Convert() | ir.Atomic():
                yield Do(site, who, self._touches(statement, site, spans))
            case ir.Copy(kind=kind, completes=completes):
                yield self._start(statement, "cp" if kind == "async_copy" else "tma", completes, site, spans, who)
            case ir.Contract(op="wgmma", completes=completes):
                yield self._start(statement, "mma", completes, site, spans, who)
            case ir.Contract():
                yield Do(site, who, self._touches(statement, site, spans))
            case ir.Reduce(scope=scope, scratch=scratch) | ir.Pick(scope=scope, scratch=scratch):
                yield from self._collective(statement, scope, scratch, site, spans, who)
            case ir.Declare(buffer):
                # What all roles share is declared before any of them begins; no role forgets it for the others.
                if role is not None or not self.roles or buffer.owner:
                    yield Forget(site, who, buffer.name)
                if buffer.init is not None:
                    yield Do(site, who, self._touches(statement, site, spans))
            case ir.Commit(group):
                yield Commit(site, who, group)
            case ir.WaitGroup(group, pending):
                yield Drain(site, who, group, span_of(pending, spans)[0])
            case ir.Sync(scope, number, threads):
                count = span_of(threads, spans)[1] if threads is not None else 0
                yield Meet(site, who, f"named {number}" if scope == "named" else scope, count, scope)
            case ir.Fence(kind) if kind in ("async_proxy", "wgmma"):
                yield Fence(site, who, "async" if kind == "async_proxy" else "mma")
            case _:
                yield from self._phase_steps(statement, site, spans, role, who)

    def _phase_steps(
        self, statement: Statement, site: int, spans: dict[str, Reach], role: str | None, who: Who
    ) -> Iterator[Step]:
        match statement:
            case ir.Wait(name, slot) if name in self.slots:
                yield Await(site, who, self._slot(name, slot, spans), 0)
            case ir.Arrive(name, slot, once) if name in self.slots:
                threads = self.agents[role].threads if role else max(1, self._number(self.launch.threads))
                if who is Who.ONE:
                    threads = 1
                count = {"thread": threads, "warp": -(-threads // WARP), "role": 1}[once]
                by = Who.ONE if once == "role" else who
                yield Arrive(site, by, self._slot(name, slot, spans), count)
            case ir.Expect(name, slot, size) if name in self.slots:
                yield Expect(site, who, self._slot(name, slot, spans), span_of(size, spans)[1])

    def _slot(self, name: str, slot: Expr, spans: dict[str, Reach]) -> tuple[str, int]:
        return name, span_of(slot, spans)[0] % self.slots[name]

    def _start(
        self,
        statement: Statement,
        unit: str,
        completes: ir.Completion | None,
        site: int,
        spans: dict[str, Reach],
        who: Who,
    ) -> Step:
        touches = self._touches(statement, site, spans, unit)
        size, barrier, group = 0, None, ""
        if completes is not None and completes.kind == "barrier" and completes.name in self.slots:
            barrier = self._slot(completes.name, completes.slot or Number(0), spans)
            if unit == "tma":
                size = self.copied_bytes(statement, spans)
        elif completes is not None:
            group = completes.name
        return Start(site, who, touches, unit, group, barrier, size)  # type: ignore[arg-type]

    def copied_bytes(self, statement: Statement, spans: dict[str, Reach]) -> int:
        """The bytes that a bulk copy moves: all elements of its target's tile, those outside the source too."""
        if not isinstance(statement, ir.Copy):
            return 0
        side = statement.target if self.buffers[statement.target.buffer].space == "shared" else statement.source
        buffer = self.buffers[side.buffer]
        elements = 0
        for box in boxes_of(side, buffer, {**spans, **named_spans((side,), spans)}):
            elements += math.prod(high - low + 1 for low, high in box)
        return elements * ir.DTYPE_BYTES[buffer.dtype]

    def _collective(
        self, statement: Statement, scope: str, scratch: str, site: int, spans: dict[str, Reach], who: Who
    ) -> Iterator[Step]:
        touches = self._touches(statement, site, spans)
        if scope not in ("block", "cluster"):
            yield Do(site, who, touches)
            return
        meet = Meet(site, who, scope, 0, scope)  # type: ignore[arg-type]
        yield meet
        if scratch in self.buffers:
            yield Do(site, who, self._access(Ref(scratch), site, spans, writes_it=True))
            yield meet
            touches = (*self._access(Ref(scratch), site, spans, writes_it=False), *touches)
        yield Do(site, who, touches)

    # -- accesses -----------------------------------------------------------------------------------------------

    def _touches(self, statement: Statement, site: int, spans: dict[str, Reach], unit: str = "") -> tuple[Touch, ...]:
        refs = self.refs.get(site)
        if refs is None:
            read, written = reads(statement), writes(statement)
            guard = getattr(statement, "where", None)
            deciding = names_deciding((*read, *written), guard.condition if guard else None, self.buffers)
            refs = self.refs[site] = read, written, deciding
        read, written, names = refs
        key = (site, *[spans.get(name) for name in names])
        found = self.touched.get(key)
        if found is None:
            found = self.touched[key] = self._reached(statement, site, read, written, spans, unit)
        return found

    def _reached(
        self,
        statement: Statement,
        site: int,
        read: tuple[Ref, ...],
        written: tuple[Ref, ...],
        spans: dict[str, Reach],
        unit: str,
    ) -> tuple[Touch, ...]:
        local = {**spans, **named_spans((*read, *written), spans)}
        guard = getattr(statement, "where", None)
        inside = narrow(local, guard.condition) if guard is not None else local
        whole = local if guard is not None and guard.otherwise is not None else inside
        touches: list[Touch] = []
        for ref in read:
            touches += self._access(ref, site, inside, writes_it=False, unit=unit)
        for ref in written:
            touches += self._access(ref, site, whole, writes_it=True, unit=unit, own=_own(statement, site))
        return tuple(touches)

    def _access(
        self, ref: Ref, site: int, spans: dict[str, Reach], *, writes_it: bool, unit: str = "", own: str | None = None
    ) -> tuple[Touch, ...]:
        buffer = self.buffers[ref.buffer]
        if (buffer.space == "param" and buffer.access == "in") or (self.alone and buffer.space not in _TRACKED):
            return ()
        key = "" if unit else own if own is not None else f"{site}"
        return tuple(
            Touch(ref.buffer, box, writes_it, key, private=buffer.space == "register", track=buffer.space in _TRACKED)
            for box in boxes_of(ref, buffer, spans)
            if not empty(box)
        )


_TRACKED = ("shared", "register")
_PLAIN = frozenset((ir.Copy, ir.Assign, ir.Contract, ir.Split, ir.Convert, ir.Atomic))  # where nothing is asynchronous


def _own(statement: Statement, site: int) -> str:
    return "atomic" if isinstance(statement, ir.Atomic) else f"{site}"


def _mentions(ref: Ref, variable: str) -> bool:
    first = ref.indices[0]
    inside = names_in(first) | {name for inner in refs_in(first) for name in names_in(inner)}
    return variable in inside
