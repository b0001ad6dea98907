"""Lines of a program's text: indentation, tokens and the pieces that all statements share."""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir.expr import Expr, ParseError, Ref, refs_in, show
from cake_tui.ir.expr.parser import Reader
from cake_tui.ir.expr.tokens import Cursor, tokens_of
from cake_tui.ir.program import Completion, Guard

INDENT = 2
MOST_LINES = 20_000
DEEPEST_BLOCK = 40

# Words that begin a statement, and those of expressions; no buffer, size or variable may be called so.
WORDS = frozenset(
    """program structure size const param workspace shared register launch warp_role role for if else copy async_copy
    tma_copy commit wait arrive expect barrier fence reduce argmin argmax topk split atomic convert
    where in and or not inf outer mma wgmma global group""".split()  # noqa: SIM905 - reads as the list it is
)


class Line(Cursor):
    """One line: its number, its depth in steps of two spaces and a cursor over its tokens."""

    def __init__(self, number: int, text: str, buffers: set[str]) -> None:
        body = text.lstrip(" ")
        indent = len(text) - len(body)
        super().__init__(tokens_of(body, number, indent), number)
        if indent % INDENT or indent > INDENT * DEEPEST_BLOCK:
            raise ParseError(number, indent + 1, f"{indent} spaces", f"steps of {INDENT}, at most {DEEPEST_BLOCK} deep")
        self.depth = indent // INDENT
        self.buffers = buffers

    def expression(self) -> Expr:
        """Read an expression; buffers in it must have been declared."""
        column = self.now.column
        expr = Reader(self, self.buffers).expression()
        for ref in refs_in(expr):
            self._known(ref, column)
        return expr

    def reference(self) -> Ref:
        """Read a reference to a declared buffer."""
        column = self.now.column
        ref = Reader(self, self.buffers).reference()
        for inner in refs_in(ref):
            self._known(inner, column)
        return ref

    def _known(self, ref: Ref, column: int) -> None:
        if ref.buffer not in self.buffers:
            known = ", ".join(sorted(self.buffers)) or "none"
            raise ParseError(self.line, column, f"the buffer {ref.buffer}", f"a declared one: {known}")

    def new_name(self, what: str) -> str:
        """Read a name that is no word of the grammar."""
        return self.name(what, WORDS)

    def slot(self) -> Expr:
        """Read ``[k]`` behind a barrier's name."""
        self.expect("[")
        slot = self.expression()
        self.expect("]")
        return slot

    def guard(self) -> Guard | None:
        """Read ``where condition else value`` where it stands here."""
        if not self.accept("where"):
            return None
        condition = self.expression()
        return Guard(condition, self.expression() if self.accept("else") else None)

    def completion(self) -> Completion | None:
        """Read ``completes group g`` or ``completes full[k]`` where it stands here."""
        if not self.accept("completes"):
            return None
        if self.accept("group"):
            return Completion("group", self.new_name("the group's name"))
        name = self.new_name("a barrier's name or 'group'")
        return Completion("barrier", name, self.slot())

    def dotted(self, what: str) -> str:
        """Read ``m16n8k8.tf32``, a name with dots."""
        words = [self.name(what)]
        while self.accept("."):
            words.append(self.name(what))
        return ".".join(words)

    def end(self) -> None:
        """Raise ParseError where anything is left on the line."""
        if not self.ended:
            raise self.error("the end of the line")


def lines_of(text: str, buffers: set[str]) -> Iterator[Line]:
    """Yield the lines that say something; empty lines and ``#`` comments are passed over."""
    rows = text.split("\n")
    if len(rows) > MOST_LINES:
        raise ParseError(MOST_LINES, 1, f"{len(rows)} lines", f"at most {MOST_LINES}")
    for number, row in enumerate(rows, start=1):
        if row.strip(" ") and not row.lstrip(" ").startswith("#"):
            yield Line(number, row.rstrip(" "), buffers)


def show_guard(guard: Guard | None) -> str:
    """Print a guard with the space before it, or nothing."""
    if guard is None:
        return ""
    otherwise = "" if guard.otherwise is None else f" else {show(guard.otherwise)}"
    return f" where {show(guard.condition)}{otherwise}"


def show_completion(completion: Completion | None) -> str:
    """Print what completes a statement with the space before it, or nothing."""
    if completion is None:
        return ""
    if completion.slot is None:
        return f" completes group {completion.name}"
    return f" completes {completion.name}[{show(completion.slot)}]"


def show_clause(word: str, expr: Expr | None) -> str:
    """Print `` word expr``, or nothing for None."""
    return "" if expr is None else f" {word} {show(expr)}"
