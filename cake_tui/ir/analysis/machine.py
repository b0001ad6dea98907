"""A machine that runs the agents of one block on known sizes and reports every pair of accesses that nothing orders.

Each agent (a warp role, or the block) is a list of steps. An *event* is one access to a buffer. What an agent knows
is a set of events (bits of a whole number) that happened before its next step for all of its threads; barriers,
phase barriers and group waits move events from one set to another, as vector clocks do. Because the check looks at
what is known and not at the order in which the machine happens to run agents, one run finds the races of all orders
with the same path through the program.
"""

from __future__ import annotations

from cake_tui.ir.analysis.agents import NOTHING, Agent, Event, Phase
from cake_tui.ir.analysis.boxes import Box, meet, uncovered, within
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
from cake_tui.ir.program import WARP

GENERIC = ("", "cp")  # ordinary instructions and cp.async; tma and wgmma use the asynchronous proxy


class Machine:
    """Runs agents until all are done or all are stuck; `clashes` says what it found, each pair of sites once."""

    def __init__(self, agents: list[Agent], barriers: dict[str, int]) -> None:
        self.agents = agents
        self.arrivals = barriers
        self.phases: dict[tuple[str, int], Phase] = {}
        self.events: list[Event] = []
        self.by_buffer: dict[str, list[Event]] = {}
        self.written: dict[str, list[Box]] = {}
        self.clashes: list[Clash] = []
        self.fences: list[tuple[int, int]] = []  # the fence, and what it orders before the asynchronous proxy
        self._reported: set[tuple[str, int, int | None]] = set()

    def run(self) -> list[Clash]:
        """Run to the end and return what was found, in the order it was met.

        Agents stuck at a barrier of threads are reported and let go, so that what the barrier should have ordered is
        found too; where agents wait for phases that never end, the run ends.
        """
        while True:
            self._advance()
            stuck = [agent for agent in self.agents if not agent.done]
            for agent in stuck:
                self._stuck(agent)
            freed = [agent for agent in stuck if agent.waiting is not None]
            if not freed:
                break
            for agent in freed:
                self._leave(agent)
        if all(agent.done for agent in self.agents):
            self._leftovers()
        return self.clashes

    def _advance(self) -> None:
        """Run agents until none can move."""
        moved = True
        while moved:
            moved = False
            for index, agent in enumerate(self.agents):
                while not agent.done and self._step(index, agent):
                    moved = True
            moved = self._meet() or moved

    # -- one step; False where it must wait ---------------------------------------------------------------------

    def _step(self, index: int, agent: Agent) -> bool:
        step = agent.steps[agent.at]
        if isinstance(step, Meet):
            agent.waiting = step
            return False
        if isinstance(step, Await) and not self._await(index, agent, step):
            return False
        if isinstance(step, Do):
            self._do(index, agent, step)
        elif isinstance(step, Start):
            self._start(index, agent, step)
        elif isinstance(step, Commit):
            agent.groups.setdefault(step.group, []).append(agent.open.pop(step.group, []))
        elif isinstance(step, Drain):
            self._drain(agent, step)
        elif isinstance(step, Arrive):
            self._arrive(index, agent, step.barrier, step.arrivals, step)
        elif isinstance(step, Expect):
            phase = self._phase(step.barrier)
            phase.pending_bytes += step.size_bytes
            phase.expected.append((step.site, step.size_bytes))
            self._arrive(index, agent, step.barrier, 1, Expect(step.site, Who.ONE, step.barrier, step.size_bytes))
        elif isinstance(step, Forget):
            self.written.pop(step.buffer, None)
        elif isinstance(step, Fence):
            if step.kind == "async":
                self._fence(index, agent, step)
            else:
                agent.dirty.clear()
        agent.at += 1
        return True

    def _known(self, agent: Agent, who: Who) -> int:
        return agent.seen | agent.lead if who is Who.ONE or agent.threads == 1 else agent.seen

    def _do(self, index: int, agent: Agent, step: Do) -> None:
        for touch in step.touches:
            self._check(index, agent, step, touch, "")
        if agent.threads > 1 and step.who is Who.ALL:
            self._within(step)
        for touch in step.touches:
            event = self._record(index, step.site, touch, "", self._known(agent, step.who), over=True)
            self._did(agent, step, event.bit)
            if touch.private and touch.writes:
                agent.dirty[touch.buffer] = step.site

    def _did(self, agent: Agent, step: Step, bit: int) -> None:
        agent.own |= bit
        if step.who is Who.ONE or agent.threads == 1:
            agent.lead |= bit
            agent.led |= bit

    def _fence(self, index: int, agent: Agent, step: Fence) -> None:
        """Each thread's fence orders what that thread did before, for those who know of the fence."""
        mine = agent.own if step.who is Who.ALL else agent.led
        event = self._mark(index, step)
        self.fences.append((event, mine))
        self._did(agent, step, event)

    def _mark(self, index: int, step: Step) -> int:
        """A thing that happens and touches no buffer; return its bit."""
        event = Event(step.site, NOTHING, index, bit=1 << len(self.events))
        self.events.append(event)
        return event.bit

    def _within(self, step: Do) -> None:
        """One statement whose threads read what others of them write: two different tiles of a buffer that overlap."""
        for touch in step.touches:
            for other in step.touches:
                crosses = touch.writes and not other.writes and touch.buffer == other.buffer and touch.box != other.box
                if crosses and not touch.private and meet(touch.box, other.box):
                    self._report(Clash("race", step.site, step.site, touch.buffer, other.box))

    def _start(self, index: int, agent: Agent, step: Start) -> None:
        for touch in step.touches:
            self._check(index, agent, step, touch, step.unit)
        known = self._known(agent, step.who)
        events = [self._record(index, step.site, touch, step.unit, known, over=False) for touch in step.touches]
        if step.barrier is None:
            agent.open.setdefault(step.group, []).extend(event.bit for event in events)
            return
        phase = self._phase(step.barrier)
        self._settled(agent, phase, step, step.barrier)
        for event in events:
            event.over = True  # whoever awaits the phase knows it; nobody else does
            phase.release |= event.bit
        phase.pending_bytes -= step.size_bytes
        phase.copied.append((step.site, step.size_bytes))
        self._flip(index, step, step.barrier, phase)

    def _drain(self, agent: Agent, step: Drain) -> None:
        groups = agent.groups.setdefault(step.group, [])
        while len(groups) > step.keep:
            for bit in groups.pop(0):
                self.events[bit.bit_length() - 1].over = True
                self._did(agent, step, bit)

    def _await(self, index: int, agent: Agent, step: Await) -> bool:
        phase = self._phase(step.barrier)
        over = phase.over
        if len(over) < step.phases:
            return False
        if len(over) > step.phases:
            self._report(Clash("overrun", step.site, phase.closer, step.barrier[0]))
        passed = self._mark(index, step)
        self._did(agent, step, passed)
        phase.passed.setdefault(step.phases, []).append(passed)
        released = 0
        for mask in over[: step.phases]:
            released |= mask
        if step.who is Who.ONE:
            agent.lead |= released
        else:
            agent.seen |= released
        return True

    def _settled(self, agent: Agent, phase: Phase, step: Step, barrier: tuple[str, int]) -> None:
        """What counts into a phase must come behind the end of the one before, or it may count into that one."""
        if phase.ended and not phase.ended & self._known(agent, step.who):
            self._report(Clash("early", step.site, phase.closer, barrier[0]))

    def _arrive(self, index: int, agent: Agent, barrier: tuple[str, int], arrivals: int, step: Step) -> None:
        phase = self._phase(barrier)
        self._settled(agent, phase, step, barrier)
        alone = step.who is Who.ONE or agent.threads == 1
        phase.arrived += arrivals
        phase.release |= agent.seen | agent.lead
        if step.who is Who.ALL:
            phase.release |= agent.own
        if phase.arrived > phase.arrivals:
            self._report(Clash("arrivals", step.site, None, barrier[0], (), phase.arrived, phase.arrivals))
            phase.arrived = phase.arrivals
        if self._flip(index, step, barrier, phase) and alone and arrivals >= phase.arrivals:
            agent.lead |= phase.ended  # its own arrival was all of the phase

    def _flip(self, index: int, step: Step, barrier: tuple[str, int], phase: Phase) -> bool:
        """End the phase if nothing of it is missing."""
        if phase.arrived < phase.arrivals:
            return False
        asked, given = sum(size for _, size in phase.expected), sum(size for _, size in phase.copied)
        if phase.pending_bytes > 0 or (phase.pending_bytes < 0 and not phase.expected):
            if phase.pending_bytes < 0:
                self._report(Clash("bytes", phase.copied[0][0], None, barrier[0], (), asked, given))
            else:
                return False
        elif phase.pending_bytes < 0:
            self._report(Clash("bytes", phase.expected[0][0], phase.copied[-1][0], barrier[0], (), asked, given))
        # A wait tells odd phases from even ones only: whoever waits for the last one must be through before this ends.
        for passed in phase.passed.pop(len(phase.over), ()):
            if not passed & phase.release:
                waiting = self.events[passed.bit_length() - 1].site
                self._report(Clash("overrun", waiting, step.site, barrier[0]))
        phase.closer, phase.ended = step.site, self._mark(index, step)
        phase.over.append(phase.release | phase.ended)
        phase.arrived = phase.pending_bytes = phase.release = 0
        phase.expected, phase.copied = [], []
        return True

    def _phase(self, barrier: tuple[str, int]) -> Phase:
        if barrier not in self.phases:
            self.phases[barrier] = Phase(self.arrivals[barrier[0]])
        return self.phases[barrier]

    # -- barriers of threads ------------------------------------------------------------------------------------

    def _meet(self) -> bool:
        """Let through every barrier whose threads are all there."""
        moved = False
        for agent in self.agents:
            meet_step = agent.waiting
            if meet_step is None:
                continue
            if meet_step.scope == "warp":
                if agent.threads <= WARP:
                    self._join([agent])
                else:
                    self._leave(agent)
                moved = True
                continue
            there = [other for other in self.agents if other.waiting and other.waiting.name == meet_step.name]
            needed = meet_step.threads if meet_step.scope == "named" else sum(other.threads for other in self.agents)
            if sum(other.threads for other in there) >= needed:
                self._join(there)
                moved = True
        return moved

    def _join(self, agents: list[Agent]) -> None:
        known = 0
        for agent in agents:
            known |= agent.seen | agent.lead | agent.own
        for agent in agents:
            agent.seen |= known
            self._leave(agent)

    def _leave(self, agent: Agent) -> None:
        agent.waiting = None
        agent.at += 1

    # -- accesses -----------------------------------------------------------------------------------------------

    def _record(self, index: int, site: int, touch: Touch, unit: str, known: int, *, over: bool) -> Event:
        event = Event(site, touch, index, unit, over, 1 << len(self.events))
        self.events.append(event)
        events = self.by_buffer.setdefault(touch.buffer, [])
        if touch.writes:
            self._mark_written(touch)
            # Whoever is ordered behind this write is ordered behind what came before it: that may be forgotten.
            if not touch.private:
                events[:] = [old for old in events if not (old.bit & known and within(old.touch.box, touch.box))]
            else:
                events[:] = [old for old in events if not old.over]
        events.append(event)
        return event

    def _mark_written(self, touch: Touch) -> None:
        boxes = self.written.setdefault(touch.buffer, [])
        if uncovered(touch.box, boxes) is not None:
            boxes.append(touch.box)

    def _check(self, index: int, agent: Agent, step: Do | Start, touch: Touch, unit: str) -> None:
        if not touch.writes and touch.track:
            gap = uncovered(touch.box, self.written.get(touch.buffer, ()))
            if gap is not None:
                self._report(Clash("unwritten", step.site, None, touch.buffer, gap))
        known = self._known(agent, step.who)
        for event in self.by_buffer.get(touch.buffer, ()):
            if not (touch.writes or event.touch.writes):
                continue
            if not meet(touch.box, event.touch.box):
                continue
            if touch.private:
                self._check_private(index, step, touch, event, unit)
            elif not event.bit & known and not self._own(index, touch, event, unit):
                self._clash(step, touch, event, unit)
            elif (
                unit in ("tma", "mma")
                and not touch.writes
                and event.unit in GENERIC
                and not self._is_fenced(event, known)
            ):
                self._report(Clash("unfenced", step.site, event.site, touch.buffer, touch.box))
        if unit == "mma" and touch.private and touch.buffer in agent.dirty:
            self._report(Clash("unfenced", step.site, agent.dirty[touch.buffer], touch.buffer, touch.box, note="mma"))

    def _check_private(self, index: int, step: Step, touch: Touch, event: Event, unit: str) -> None:
        if event.agent == index and not event.over and not (unit == "mma" and event.unit == "mma"):
            self._report(Clash("unwaited", step.site, event.site, touch.buffer, touch.box))

    def _own(self, index: int, touch: Touch, event: Event, unit: str) -> bool:
        """Whether each thread meets only what it did itself."""
        if event.agent != index or not touch.own or touch.own != event.touch.own or unit or event.unit:
            return False
        return touch.box == event.touch.box or touch.own == "atomic"

    def _is_fenced(self, event: Event, known: int) -> bool:
        return any(fence & known and event.bit & before for fence, before in self.fences)

    def _clash(self, step: Step, touch: Touch, event: Event, unit: str) -> None:
        if event.unit and event.touch.writes:
            kind = "uncommitted" if self._uncommitted(event) else "unwaited"
            self._report(Clash("unwaited", step.site, event.site, touch.buffer, touch.box, note=kind))
        elif unit and touch.writes:
            self._report(Clash("refill", step.site, event.site, touch.buffer, touch.box))
        elif event.unit:
            self._report(Clash("refill", step.site, event.site, touch.buffer, touch.box, note="unwaited"))
        else:
            self._report(Clash("race", step.site, event.site, touch.buffer, touch.box))

    def _uncommitted(self, event: Event) -> bool:
        return any(event.bit in bits for bits in self.agents[event.agent].open.values())

    # -- the end ------------------------------------------------------------------------------------------------

    def _stuck(self, agent: Agent) -> None:
        step = agent.steps[agent.at]
        if isinstance(step, Await):
            phase = self._phase(step.barrier)
            asked, given = sum(size for _, size in phase.expected), sum(size for _, size in phase.copied)
            if asked != given and phase.expected:
                self._report(Clash("bytes", phase.expected[0][0], None, step.barrier[0], (), asked, given))
            if phase.copied and not phase.expected:
                self._report(Clash("bytes", phase.copied[0][0], step.site, step.barrier[0], (), asked, given))
            self._report(Clash("stuck", step.site, None, step.barrier[0], (), phase.arrivals, phase.arrived))
        elif isinstance(step, Meet):
            there = sum(other.threads for other in self.agents if other.waiting and other.waiting.name == step.name)
            needed = step.threads or sum(other.threads for other in self.agents)
            self._report(Clash("stuck", step.site, None, step.name or "block", (), needed, there, "threads"))

    def _leftovers(self) -> None:
        """Asynchronous work that nobody ever waits for."""
        for agent in self.agents:
            for bits in (*agent.open.values(), *(group for groups in agent.groups.values() for group in groups)):
                for bit in bits:
                    event = self.events[bit.bit_length() - 1]
                    self._report(Clash("unfinished", event.site, None, event.touch.buffer, event.touch.box))
        for barrier, phase in self.phases.items():
            if phase.copied:
                self._report(Clash("unfinished", phase.copied[0][0], None, barrier[0]))

    def _report(self, clash: Clash) -> None:
        key = (clash.kind, clash.site, clash.other)
        if key not in self._reported:
            self._reported.add(key)
            self.clashes.append(clash)
