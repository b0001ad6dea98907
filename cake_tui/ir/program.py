"""Program types: sizes, constants, buffers, launches and statements; everything a kernel does, nothing implicit."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from cake_tui.ir.expr import Expr, Number, Ref

GRAMMAR = 1

Space = Literal["param", "workspace", "shared", "register"]
DType = Literal["f32", "f16", "bf16", "tf32", "f64", "i32", "u8"]
Access = Literal["in", "out", "inout"]
RoleKind = Literal["producer", "consumer", "loader", "compute", "epilogue"]
Scope = Literal["thread", "warp", "block", "cluster", "device"]

DTYPES: tuple[str, ...] = get_args(DType)
ROLE_KINDS: tuple[str, ...] = get_args(RoleKind)
SCOPES: tuple[str, ...] = get_args(Scope)
WARP = 32  # threads
PTXAS = "ptxas"  # the constant that is the level at which ptxas optimises, 3 without one
DTYPE_BYTES = {"f32": 4, "f16": 2, "bf16": 2, "tf32": 4, "f64": 8, "i32": 4, "u8": 1}


class Size(msgspec.Struct, frozen=True):
    """A size of the problem: constant in the source, or (value None) given at run time within a range."""

    name: str
    value: int | None = None
    multiple: int = 1
    low: int | None = None
    high: int | None = None


class Const(msgspec.Struct, frozen=True):
    """A named constant; with `values` it is a knob and these are its legal values, else it is derived."""

    name: str
    value: Expr
    values: tuple[int, ...] = ()


class Threads(msgspec.Struct, frozen=True):
    """``spread 16 x 16 threads, 8 x 8 each, runs 1 x 4``: threads along the axes, elements of each along the axes.

    Threads are numbered with the last axis of the buffer's `order` fastest. A thread's elements are dealt out in
    `runs`: of T threads with runs of R, thread t holds elements ``(g*T + t)*R + r`` of an axis. Runs that are not
    given are of 4, 2 or 1, the longest that divides what each holds, so that they move as one vector. No statement
    tells a thread's number but a reduction within a warp: without one, lowering may number the threads of a product
    otherwise, so that a warp covers a block of them.
    """

    threads: tuple[Expr, ...]
    each: tuple[Expr, ...]
    runs: tuple[Expr, ...] = ()


class Fragment(msgspec.Struct, frozen=True):
    """``spread fragment m16n8k8.acc``: held as a named operand of an mma."""

    name: str


class Lanes(msgspec.Struct, frozen=True):
    """``spread lanes 16``: SIMD lanes along the last axis, on ``c``."""

    count: Expr


Spread = Threads | Fragment | Lanes


class Buffer(msgspec.Struct, frozen=True, cache_hash=True):
    """A typed buffer. `pad` is elements added to each row of the last axis; a `ring` wraps its first axis.

    `order` lists the axes outermost first where that is not 0, 1, 2…; `align` is bytes; `owner` is the role
    that holds a register buffer; `init` fills a register buffer where it is declared.
    """

    name: str
    space: Space
    dtype: DType
    shape: tuple[Expr, ...] = ()
    access: Access = "in"
    align: int = 0
    order: tuple[int, ...] = ()
    pad: Expr = Number(0)
    swizzle: int = 0
    ring: bool = False
    owner: str = ""
    spread: Spread | None = None
    init: Expr | None = None


def inner_axis(buffer: Buffer) -> int:
    """Return the axis whose elements lie side by side in memory; -1 without axes."""
    return buffer.order[-1] if buffer.order else len(buffer.shape) - 1


class Guard(msgspec.Struct, frozen=True, cache_hash=True):
    """``where condition else otherwise``: elements outside take `otherwise`, or are not written without one."""

    condition: Expr
    otherwise: Expr | None = None


class Completion(msgspec.Struct, frozen=True):
    """What completes an asynchronous statement: a commit group by name, or slot `slot` of a barrier."""

    kind: Literal["group", "barrier"]
    name: str
    slot: Expr | None = None


# --- declarations inside a launch -------------------------------------------------------------------


class Declare(msgspec.Struct, frozen=True):
    """A shared or register buffer; it lives to the end of the block of statements it stands in."""

    buffer: Buffer


class Barrier(msgspec.Struct, frozen=True, cache_hash=True):
    """``barrier full[S] arrivals 1``: `slots` mbarriers, each completed by that many arrivals."""

    name: str
    slots: Expr
    arrivals: Expr


class WarpRole(msgspec.Struct, frozen=True, cache_hash=True):
    """``warp_role load kind loader warps 0 to 3 registers 40``; both ends included."""

    name: str
    kind: RoleKind
    first: Expr
    last: Expr
    registers: int | None = None


# --- control ----------------------------------------------------------------------------------------


class Role(msgspec.Struct, frozen=True, cache_hash=True):
    """The body of one warp role, run by all its threads, by one warp or by one thread."""

    name: str
    body: tuple[Statement, ...]
    who: Literal["all", "one warp", "one thread"] = "all"


class For(msgspec.Struct, frozen=True, cache_hash=True):
    """``for k in start..stop``, stop excluded. `stages` makes it a pipeline over rings of that depth.

    `carry` names the register buffers whose values one iteration hands to the next.
    """

    variable: str
    start: Expr
    stop: Expr
    body: tuple[Statement, ...]
    step: Expr = Number(1)
    unroll: Expr | None = None
    stages: Expr | None = None
    carry: tuple[str, ...] = ()


class If(msgspec.Struct, frozen=True, cache_hash=True):
    """A branch that every thread of the executing role takes alike."""

    condition: Expr
    then: tuple[Statement, ...]
    orelse: tuple[Statement, ...] = ()


# --- movement ---------------------------------------------------------------------------------------


class Copy(msgspec.Struct, frozen=True, cache_hash=True):
    """A tile moved from `source` to `target`; ``async_copy`` and ``tma_copy`` name what completes them."""

    source: Ref
    target: Ref
    kind: Literal["copy", "async_copy", "tma_copy"] = "copy"
    vector: Expr | None = None
    completes: Completion | None = None
    where: Guard | None = None


# --- synchronisation --------------------------------------------------------------------------------


class Commit(msgspec.Struct, frozen=True, cache_hash=True):
    """``commit group loads``: closes the group of asynchronous statements issued so far."""

    group: str


class WaitGroup(msgspec.Struct, frozen=True, cache_hash=True):
    """``wait group loads pending 2``: until at most that many of the group's commits are unfinished."""

    group: str
    pending: Expr = Number(0)


class Wait(msgspec.Struct, frozen=True, cache_hash=True):
    """``wait full[k]``: until the slot's current phase completes."""

    barrier: str
    slot: Expr


class Arrive(msgspec.Struct, frozen=True, cache_hash=True):
    """``arrive empty[k] once a warp``: one arrival a thread, a warp or the whole role."""

    barrier: str
    slot: Expr
    once: Literal["thread", "warp", "role"] = "thread"


class Expect(msgspec.Struct, frozen=True, cache_hash=True):
    """``expect full[k] bytes E``: one arrival that also announces so many bytes of copies."""

    barrier: str
    slot: Expr
    bytes: Expr


class Sync(msgspec.Struct, frozen=True, cache_hash=True):
    """``barrier block``, ``barrier warp``, ``barrier cluster`` or ``barrier named 1 threads 128``."""

    scope: Literal["block", "warp", "cluster", "named"]
    number: int = 0
    threads: Expr | None = None


class Fence(msgspec.Struct, frozen=True, cache_hash=True):
    """``fence async_proxy``: orders generic accesses before the asynchronous proxy; others by name."""

    kind: Literal["async_proxy", "wgmma", "block", "cluster", "device"]


# --- compute ----------------------------------------------------------------------------------------


class Assign(msgspec.Struct, frozen=True, cache_hash=True):
    """A map over the target's elements: ``y[m in …, n in …] = relu(acc + bias[n])``.

    Whole register tiles in `value` are taken element by element, aligned at their last axes; named spans of
    the target give the element's coordinates. `op` is ``=`` or ``+=``.
    """

    target: Ref
    value: Expr
    op: Literal["=", "+="] = "="
    vector: Expr | None = None
    where: Guard | None = None


class Contract(msgspec.Struct, frozen=True, cache_hash=True):
    """``acc += outer(x, y) math fma``; mma multiplies m x k by k x n; wgmma also names what completes it."""

    target: Ref
    left: Ref
    right: Ref
    op: Literal["outer", "mma", "wgmma"] = "outer"
    math: str = "fma"
    completes: Completion | None = None
    where: Guard | None = None


class Split(msgspec.Struct, frozen=True, cache_hash=True):
    """``split x -> high, low``: parts of lower precision whose sum is the source as nearly as they can."""

    source: Ref
    parts: tuple[Ref, ...]
    where: Guard | None = None


class Reduce(msgspec.Struct, frozen=True, cache_hash=True):
    """``reduce x over 1 with max -> m within block through scratch``; takes the target's old value with `carry`."""

    source: Ref
    axis: int
    operator: Literal["add", "mul", "max", "min"]
    target: Ref
    scope: Scope = "thread"
    scratch: str = ""
    carry: bool = False


class Pick(msgspec.Struct, frozen=True, cache_hash=True):
    """``argmin x over 1 -> value, index within warp``, ``topk 8 x over 1 -> values, indices``: pairs.

    Ties go to the lower index. `first` is the coordinate of the source's first element; with `carry` the
    targets' old pairs compete.
    """

    op: Literal["argmin", "argmax", "topk"]
    source: Ref
    axis: int
    values: Ref
    indices: Ref
    count: Expr = Number(1)
    first: Expr = Number(0)
    scope: Scope = "thread"
    scratch: str = ""
    carry: bool = False


class Atomic(msgspec.Struct, frozen=True, cache_hash=True):
    """``atomic add y[…] with acc scope device``: order of the sums is the machine's."""

    operator: Literal["add", "max", "min"]
    target: Ref
    value: Expr
    scope: Scope = "device"
    where: Guard | None = None


class Convert(msgspec.Struct, frozen=True, cache_hash=True):
    """``convert x -> y``: the same elements under another spread or dtype."""

    source: Ref
    target: Ref


Statement = (
    Declare | Barrier | WarpRole | Role | For | If | Copy | Commit | WaitGroup | Wait | Arrive | Expect | Sync | Fence
    | Assign | Contract | Split | Reduce | Pick | Atomic | Convert
)  # fmt: skip


class Axis(msgspec.Struct, frozen=True, cache_hash=True):
    """One axis of a launch's grid and its extent in blocks."""

    name: str
    extent: Expr


class Launch(msgspec.Struct, frozen=True, cache_hash=True):
    """One kernel launch: a block a point of the grid, or `persistent` blocks that walk the tiles in `order`.

    ``row``: the last axis fastest; ``column``: the first axis fastest; ``grouped`` takes `group` of the first
    axis together. On ``c`` a block is one task and `threads` is 1.
    """

    name: str
    axes: tuple[Axis, ...]
    body: tuple[Statement, ...]
    threads: Expr = Number(1)
    persistent: Expr | None = None
    order: Literal["row", "column", "grouped"] = "row"
    group: Expr | None = None
    cluster: tuple[Expr, ...] = ()


class Program(msgspec.Struct, frozen=True):
    """The IR of a schedule: sizes, constants, global buffers and launches in order."""

    name: str
    target: Literal["c", "cuda"]
    arch: str
    sizes: tuple[Size, ...]
    consts: tuple[Const, ...]
    buffers: tuple[Buffer, ...]
    launches: tuple[Launch, ...]
    structure: str = ""

    def buffer(self, name: str) -> Buffer:
        """Return a parameter or workspace; raises KeyError where there is none of that name."""
        for buffer in self.buffers:
            if buffer.name == name:
                return buffer
        raise KeyError(name)
