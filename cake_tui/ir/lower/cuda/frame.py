"""Where a statement of lowered CUDA stands: the team of threads that runs it, and who holds which registers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from cake_tui.ir.expr import Expr, Name, Number, Ref, names_in, rewrite
from cake_tui.ir.lower.cuda.holds import Hold, Holds, Spreads
from cake_tui.ir.lower.frame import Frame
from cake_tui.ir.lower.tiles import address, shaped
from cake_tui.ir.lower.writer import Writer
from cake_tui.ir.program import Buffer, Launch, Program, Size
from cake_tui.ir.refusal import refuse
from cake_tui.model.lowered import TensorMap

LARGEST_INT = (1 << 31) - 1


class Team(msgspec.Struct, frozen=True):
    """The threads that run a body, a role's or the whole block's, counted by the variable `counter` from 0."""

    threads: int
    expr: Expr
    counter: str = "thread"
    who: Literal["all", "one warp", "one thread"] = "all"
    role: str = ""


class CudaFrame(Frame):
    """A frame that knows its team, the spreads of the launch and what stands at the head of the function."""

    team: Team
    spreads: Spreads
    launch: Launch
    integer: str  # the type of block numbers and loop variables
    tensor_maps: dict[str, TensorMap]
    coordinates: dict[tuple[int, int], str]  # (stride, threads) of a hold -> the variable of the team's body
    arranged: tuple[tuple[int, int], ...]  # the holds whose threads a warp covers as a block of lanes
    slots: dict[str, Expr]  # of each barrier
    phases: dict[str, str]  # barrier -> the variable of the team's body with its parities
    aliases: dict[Expr, Expr]  # expressions that a variable stands for
    unrolled: frozenset[str]  # variables that are numbers once the compiler has unrolled their loops
    hoisted: dict[Expr, str]  # what the team's body has worked out once, at `head`
    head: tuple[int, int]  # place and margin of the writer

    def __init__(self, program: Program, launch: Launch, writer: Writer, taken: frozenset[str]) -> None:
        super().__init__(program, writer, taken)
        self.launch = launch
        self.integer = "int"
        self.tensor_maps = {}
        self.coordinates = {}
        self.arranged = ()
        self.slots = {}
        self.phases = {}
        self.aliases = {}
        self.unrolled = frozenset()
        self.hoisted = {}
        self.head = (0, 0)

    def keep_head(self) -> None:
        """Let what depends on the thread alone be worked out here."""
        self.hoisted = {}
        self.head = (self.writer.keep_place(), self.writer.depth)

    def hoist(self, wanted: str, value: Expr) -> Expr:
        """Return a variable for an expression over the thread's number, set once for the team's body."""
        value = self.tidy(value)
        if isinstance(value, Name | Number):
            return value
        name = self.hoisted.get(value)
        if name is None:
            (name,) = self.fresh(wanted)
            number = 2
            while name in self.hoisted.values():
                name = f"{wanted}{number}"
                number += 1
            place, depth = self.head
            self.writer.put(place, depth, f"const int {name} = {self.c(value)};")
            self.hoisted[value] = name
        self.define(name, value)
        return Name(name)

    def tidy(self, expr: Expr) -> Expr:
        """Simplify an expression by what is proven here, and call what has a variable by its name."""
        found = super().tidy(expr)
        return self.aliases.get(found, found) if self.aliases else found

    def aliased(self, name: str, value: Expr) -> None:
        """Let a variable stand for an expression from here on."""
        self.aliases = {**self.aliases, value: Name(name)}
        self._simple = {}

    def unroll(self, *names: str) -> None:
        """Remember that variables are numbers in every copy of the loop's body."""
        self.unrolled |= frozenset(names)

    def becomes_number(self, expr: Expr) -> bool:
        """Whether the compiler, but not the source, has a number for an expression: it counts unrolled loops."""
        names = names_in(expr)
        rest = names - self.unrolled
        return rest != names and all(self.proofs.number(self.tidy(Name(name))) is not None for name in rest)

    def c(self, expr: Expr, least: int = 0) -> str:
        """Print a whole-number expression or condition; elements of integer buffers may be in it."""
        return super().c(rewrite(expr, self._element), least)

    def _element(self, node: Expr) -> Expr | None:
        if not isinstance(node, Ref):
            return None
        tile = shaped(node, self.buffers)
        if tile.axes or tile.buffer.dtype not in ("i32", "u8") or tile.buffer.space == "register":
            raise refuse(
                "lowering", node.buffer, "an index that is a tile", "one element of an i32 buffer", step="lower"
            )
        return Name(f"{node.buffer}[{super().c(address(tile, ()))}]")

    def holds(self, buffer: Buffer) -> Holds:
        """Return who holds a register buffer."""
        found = self.spreads.holds.get(buffer.name)
        if found is None:
            kind = type(buffer.spread).__name__.lower()
            raise refuse("lowering", buffer.name, f"a spread of {kind}", "threads", step="lower")
        return found

    def thread(self, hold: Hold) -> Expr:
        """Return this thread's coordinate along an axis."""
        if hold.threads == 1:
            return Number(0)
        return Name(self.coordinates[hold.stride, hold.threads])

    def at_most(self, expr: Expr) -> int | None:
        """Return an upper bound of a whole-number expression, None where nothing bounds it."""
        return self.proofs.at_most(self.tidy(expr))

    def divides(self, divisor: int, expr: Expr) -> bool:
        """Whether an expression is surely a multiple of a number."""
        return divisor == 1 or self.proofs.multiple_of(self.tidy(expr), divisor)


def wide(frame: CudaFrame, buffers: Iterable[Buffer]) -> bool:
    """Whether an element of these buffers may be too far off for 32-bit arithmetic."""
    for buffer in buffers:
        elements = 1
        for extent in buffer.shape:
            most = frame.at_most(extent)
            if most is None:
                return True
            elements *= most
        if elements > LARGEST_INT:
            return True
    return False


def runtime(program: Program) -> tuple[Size, ...]:
    """Return the sizes that are arguments."""
    return tuple(size for size in program.sizes if size.value is None)
