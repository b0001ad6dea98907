"""What the machine keeps of agents, events and phases while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from cake_tui.ir.analysis.steps import Meet, Step, Touch

NOTHING = Touch("", (), writes=False)


@dataclass
class Event:
    """One access, or a thing that happens and touches nothing."""

    site: int
    touch: Touch
    agent: int
    unit: str = ""  # empty for a synchronous access
    over: bool = True  # an asynchronous access that nobody waited for is not
    bit: int = 0


@dataclass
class Phase:
    """One element of a barrier array."""

    arrivals: int
    arrived: int = 0
    pending_bytes: int = 0
    expected: list[tuple[int, int]] = field(default_factory=list)  # site, bytes
    copied: list[tuple[int, int]] = field(default_factory=list)
    release: int = 0
    over: list[int] = field(default_factory=list)  # what each finished phase released
    passed: dict[int, list[int]] = field(default_factory=dict)  # waits for so many phases, once they are through
    closer: int | None = None  # the site that ended the last phase
    ended: int = 0  # the end of the last phase


@dataclass
class Agent:
    """A group of threads with one body: `steps` in order."""

    name: str
    threads: int
    steps: list[Step]
    at: int = 0
    seen: int = 0  # known by every thread
    lead: int = 0  # known by the elected thread besides
    own: int = 0  # done by some thread of the agent
    led: int = 0  # done by the elected thread
    dirty: dict[str, int] = field(default_factory=dict)  # registers changed since the last mma fence
    open: dict[str, list[int]] = field(default_factory=dict)  # group: events not yet committed
    groups: dict[str, list[list[int]]] = field(default_factory=dict)  # group: commits in flight
    waiting: Meet | None = None

    @property
    def done(self) -> bool:
        """Whether the body is over."""
        return self.at >= len(self.steps)
