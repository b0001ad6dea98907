"""The program under the laws: its numbers, lines and accesses, each worked out once and shared by all laws."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property

from cake_tui.ir import program as ir
from cake_tui.ir.analysis.accesses import Accessing, accesses_of
from cake_tui.ir.analysis.boxes import Reach
from cake_tui.ir.analysis.coverage import Reached, reached
from cake_tui.ir.analysis.intervals import span_of
from cake_tui.ir.analysis.runs import clashes_of, extents_of
from cake_tui.ir.analysis.spans import numbers_of, sample_sizes, spans_of
from cake_tui.ir.analysis.steps import Clash
from cake_tui.ir.expr import Expr
from cake_tui.ir.program import DTYPE_BYTES, WARP, Buffer, Launch, Program, Statement, inner_axis
from cake_tui.ir.text import line_numbers
from cake_tui.ir.text.program import show_statement
from cake_tui.ir.walk import Path, buffers_of, walk
from cake_tui.model.device import Device
from cake_tui.model.diagnostic import Diagnostic

MOST_SAMPLES = 3


class Subject:
    """A program with the device it is meant for and the order of sums that the problem allows."""

    def __init__(self, program: Program, device: Device | None, accumulation: str = "any") -> None:
        self.program = program
        self.device = device
        self.accumulation = accumulation
        self.sites: list[tuple[Path, Statement]] = list(walk(program))
        self.site_of = {path: at for at, (path, _) in enumerate(self.sites)}
        self.statements = dict(self.sites)
        self._buffers: dict[int, dict[str, Buffer]] = {}

    # -- places -------------------------------------------------------------------------------------------------

    @cached_property
    def lines(self) -> dict[Path, int]:
        """The line of every statement in the canonical text."""
        return line_numbers(self.program)

    def launch_line(self, index: int) -> int:
        """The line of a launch's head."""
        body = self.program.launches[index].body
        return self.lines[(index, 0)] - 1 if body else 0

    def declared_line(self, name: str) -> int:
        """The line that declares a size, constant, parameter or workspace; 0 where none does."""
        line = 1 + bool(self.program.structure)
        for group in (self.program.sizes, self.program.consts, self.program.buffers):
            for item in group:
                line += 1
                if item.name == name:
                    return line
        return 0

    def place(self, path: Path) -> str:
        """``launch main / role compute / for k``: what stands around a statement."""
        parts = [f"launch {self.program.launches[path[0]].name}"]
        for end in range(2, len(path)):
            match self.statements[path[:end]]:
                case ir.Role(name=name):
                    parts.append(f"role {name}")
                case ir.For(variable=variable):
                    parts.append(f"for {variable}")
                case ir.If():
                    parts.append("if")
        return " / ".join(parts)

    def words(self, path: Path) -> str:
        """The statement's own line of text."""
        return show_statement(self.statements[path])

    def refuse(self, law: str, path: Path, found: str, needed: str, **more: object) -> Diagnostic:
        """Make the diagnostic of one statement; `field` is its text unless `more` says otherwise."""
        more.setdefault("field", self.words(path))
        return Diagnostic(
            law=law,
            found=found,
            needed=needed,
            line=self.lines[path],
            where=self.place(path),
            **more,  # type: ignore[arg-type]
        )

    def refuse_launch(self, law: str, index: int, field: str, found: str, needed: str, **more: object) -> Diagnostic:
        """Make the diagnostic of a launch's head."""
        where = f"launch {self.program.launches[index].name}"
        return Diagnostic(
            law=law,
            field=field,
            found=found,
            needed=needed,
            line=self.launch_line(index),
            where=where,
            **more,  # type: ignore[arg-type]
        )

    # -- numbers ------------------------------------------------------------------------------------------------

    @cached_property
    def samples(self) -> list[dict[str, int]]:
        """Sizes to look at: the program's own, or a few that its ranges and multiples allow."""
        choices = [sample_sizes(size) for size in self.program.sizes]
        longest = max((len(choice) for choice in choices), default=1)
        names = [size.name for size in self.program.sizes]
        rows = [
            dict(zip(names, (choice[min(at, len(choice) - 1)] for choice in choices)))
            for at in range(min(longest, MOST_SAMPLES))
        ]
        return rows or [{}]

    @cached_property
    def numbers(self) -> dict[str, int | float]:
        """Values of sizes and constants at the first sample."""
        return numbers_of(self.program, self.samples[0])

    @cached_property
    def spans(self) -> dict[str, Reach]:
        """The same as spans of one value."""
        return spans_of(self.numbers)

    def number(self, expr: Expr, spans: dict[str, Reach] | None = None) -> int:
        """The value of an expression over sizes and constants (the greatest where it depends on more)."""
        return span_of(expr, self.spans if spans is None else spans)[1]

    def threads(self, launch: Launch) -> int:
        """Threads of a block."""
        return self.number(launch.threads)

    def blocks(self, launch: Launch) -> tuple[int, ...]:
        """The grid's extents at the first sample, outermost first."""
        return extents_of(launch, self.spans)

    # -- buffers ------------------------------------------------------------------------------------------------

    def buffers(self, index: int) -> dict[str, Buffer]:
        """Every buffer that a launch may use, by name."""
        if index not in self._buffers:
            self._buffers[index] = buffers_of(self.program.buffers, self.program.launches[index])
        return self._buffers[index]

    def declares(self, index: int, space: str) -> Iterator[tuple[Path, Buffer]]:
        """Declarations of one space in a launch, with their paths."""
        for path, statement in self.sites:
            if path[0] == index and isinstance(statement, ir.Declare) and statement.buffer.space == space:
                yield path, statement.buffer

    def shape(self, buffer: Buffer) -> tuple[int, ...]:
        """A buffer's extents at the first sample."""
        return tuple(self.number(extent) for extent in buffer.shape)

    def row_elements(self, buffer: Buffer) -> int:
        """Elements from one row of the innermost axis to the next, padding included."""
        shape = self.shape(buffer)
        return (shape[inner_axis(buffer)] if shape else 1) + self.number(buffer.pad)

    def size_bytes(self, buffer: Buffer) -> int:
        """Bytes that a buffer takes, padding included."""
        shape = self.shape(buffer)
        rows = math.prod(shape) // max(1, shape[inner_axis(buffer)]) if shape else 1
        return rows * self.row_elements(buffer) * DTYPE_BYTES[buffer.dtype]

    def smem_bytes(self, index: int) -> int:
        """Shared memory of a launch: its buffers, each aligned, and eight bytes a barrier slot."""
        total = 0
        for _, buffer in self.declares(index, "shared"):
            align = max(16, buffer.align)
            total = -(-total // align) * align + self.size_bytes(buffer)
        for path, statement in self.sites:
            if path[0] == index and isinstance(statement, ir.Barrier):
                total = -(-total // 8) * 8 + 8 * self.number(statement.slots)
        return total

    def role_threads(self, index: int) -> dict[str, int]:
        """Threads of every warp role of a launch."""
        return {
            statement.name: (self.number(statement.last) - self.number(statement.first) + 1) * WARP
            for path, statement in self.sites
            if path[0] == index and isinstance(statement, ir.WarpRole)
        }

    def role_of(self, path: Path) -> tuple[str, str] | None:
        """The role in whose body a statement stands, and who of it runs the body."""
        for end in range(2, len(path) + 1):
            statement = self.statements.get(path[:end])
            if isinstance(statement, ir.Role):
                return statement.name, statement.who
        return None

    def executors(self, path: Path, owner: str = "") -> int:
        """Threads that run what stands at a path; `owner` is the role it belongs to where it stands outside of it."""
        role = self.role_of(path)
        if role is not None and role[1] != "all":
            return 1 if role[1] == "one thread" else WARP
        whole = self.threads(self.program.launches[path[0]])
        return self.role_threads(path[0]).get(owner or (role[0] if role else ""), whole)

    # -- analyses -----------------------------------------------------------------------------------------------

    @cached_property
    def accesses(self) -> list[Accessing]:
        """Every access with run-time sizes as variables."""
        return accesses_of(self.program)

    @cached_property
    def accesses_at_samples(self) -> list[tuple[dict[str, int], list[Accessing]]]:
        """Every access at each of the samples."""
        if all(size.value is not None for size in self.program.sizes):
            return [(sizes, self.accesses) for sizes in self.samples]
        return [(sizes, accesses_of(self.program, sizes)) for sizes in self.samples]

    def reached(self, access: Accessing, *, ring: bool = False) -> Reached | None:
        """What one of the accesses reaches."""
        return reached(access, ring=ring)

    @cached_property
    def clashes(self) -> list[Clash]:
        """What the machine found in the first and the last block of every launch."""
        found: list[Clash] = []
        for index, launch in enumerate(self.program.launches):
            if launch.body:
                found += clashes_of(self.program, index, self.site_of[index, 0], self.spans)
        return found

    @property
    def capability(self) -> int:
        """Compute capability of the program's architecture: 90 for sm_90 and sm_90a; 0 where it has none."""
        digits = "".join(letter for letter in self.program.arch.removeprefix("sm_") if letter.isdigit())
        return int(digits) if self.program.arch.startswith("sm_") and digits else 0
