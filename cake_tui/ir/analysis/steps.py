"""What one block does, step by step, with every size and loop variable known: the input of the machine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

import msgspec

from cake_tui.ir.analysis.boxes import Box


class Who(Enum):
    """Which threads of an agent execute a step."""

    ALL = "all threads"
    ONE = "one thread"


class Touch(msgspec.Struct, frozen=True, gc=False):
    """One buffer's elements that a step reads or writes.

    Two touches with the same `own` key meet only within the same thread: each thread goes to elements of its own.
    `private` marks registers, which no other thread can reach.
    """

    buffer: str
    box: Box
    writes: bool
    own: str = ""
    private: bool = False
    track: bool = True  # False: its elements need not have been written before (parameters)


@dataclass(frozen=True)
class Step:
    """One step of an agent; `site` is the statement's place in the program."""

    site: int
    who: Who


@dataclass(frozen=True)
class Do(Step):
    """A statement that is over when it is left."""

    touches: tuple[Touch, ...]


@dataclass(frozen=True)
class Start(Step):
    """An asynchronous statement: it completes with a group of its thread, or on a barrier with its bytes.

    `unit` is what runs it: ``cp`` (cp.async), ``tma`` (the bulk engine), ``mma`` (wgmma). The last two reach shared
    memory through the asynchronous proxy.
    """

    touches: tuple[Touch, ...]
    unit: Literal["cp", "tma", "mma"]
    group: str = ""
    barrier: tuple[str, int] | None = None
    size_bytes: int = 0


@dataclass(frozen=True)
class Commit(Step):
    """Close a group's open batch."""

    group: str


@dataclass(frozen=True)
class Drain(Step):
    """Wait until at most `keep` batches of a group are in flight."""

    group: str
    keep: int


@dataclass(frozen=True)
class Meet(Step):
    """A barrier of threads: the block's (`name` empty), a warp's, the cluster's, or a named one of `threads`."""

    name: str = ""
    threads: int = 0
    scope: Literal["block", "warp", "cluster", "named"] = "block"


@dataclass(frozen=True)
class Arrive(Step):
    """Arrive on a phase barrier, `arrivals` times in all."""

    barrier: tuple[str, int]
    arrivals: int


@dataclass(frozen=True)
class Expect(Step):
    """Announce bytes on a phase barrier; it counts as one arrival."""

    barrier: tuple[str, int]
    size_bytes: int


@dataclass(frozen=True)
class Await(Step):
    """Wait until `phases` phases of a barrier are over since the start."""

    barrier: tuple[str, int]
    phases: int


@dataclass(frozen=True)
class Forget(Step):
    """A buffer is declared: nothing in it has been written yet."""

    buffer: str


@dataclass(frozen=True)
class Fence(Step):
    """Order this thread's earlier accesses before: ``async`` proxy reads, or ``mma`` register use."""

    kind: Literal["async", "mma"]


@dataclass(frozen=True)
class Clash:
    """What the machine found: `kind`, the site left unprotected, the other site, and the buffer with the elements."""

    kind: Literal[
        "unwaited",
        "unfenced",
        "race",
        "refill",
        "unwritten",
        "stuck",
        "bytes",
        "arrivals",
        "overrun",
        "early",
        "unfinished",
        "slot",
    ]
    site: int
    other: int | None = None
    buffer: str = ""
    box: Box = ()
    asked: int = 0
    available: int = 0
    note: str = ""
