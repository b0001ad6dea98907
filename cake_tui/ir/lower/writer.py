"""Lines of a source under construction: margins, braces, long statements broken."""

from __future__ import annotations

import re

WIDEST = 120


class _Block:
    """A brace that is open while the body is written: what `Writer.block` gives."""

    def __init__(self, writer: Writer, head: str) -> None:
        self.writer = writer
        self.head = head
        self.at = 0

    def __enter__(self) -> None:
        self.at = len(self.writer.lines)
        self.writer.line(f"{self.head} {{")
        self.writer.depth += 1

    def __exit__(self, *failure: object) -> None:
        writer = self.writer
        writer.depth -= 1
        inside = writer.lines[self.at + 1 :]
        if len(inside) == 1 and self.head.startswith(("for", "if")) and inside[0].endswith(";"):
            writer.lines[self.at] = writer.lines[self.at][:-2]
        else:
            writer.line("}")


class Writer:
    """Lines with their margin; `block` opens a brace and closes it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 1

    def line(self, text: str) -> None:
        """Add one statement, on several lines where it is long."""
        margin = "  " * self.depth
        while len(margin) + len(text) > WIDEST and (cut := _cut(text, WIDEST - len(margin))):
            self.lines.append(f"{margin}{text[:cut].rstrip()}")
            margin, text = f"{'  ' * self.depth}    ", text[cut:].lstrip()
        self.lines.append(f"{margin}{text}")

    def pragma(self, text: str) -> None:
        """Add a pragma at the margin of what it is about."""
        self.lines.append(f"{'  ' * self.depth}#pragma {text}")

    def block(self, head: str) -> _Block:
        """Add ``head {``, what the body adds, and ``}``; a body of one line goes without braces."""
        return _Block(self, head)

    def otherwise(self) -> None:
        """Join an else to the if block that just ended: its closing brace must still be there."""
        if self.lines[-1].strip() != "}":
            last = self.lines.pop()
            self.lines[-1] += " {"
            self.lines += [last, f"{'  ' * self.depth}}}"]
        self.lines.pop()

    def drop_unused(self, name: str, first: int, last: int) -> None:
        """Take out lines [first, last), a declaration, where nothing behind them names it."""
        word = re.compile(rf"\b{re.escape(name)}\b")
        if not any(name in line and word.search(line) for line in self.lines[last:]):
            del self.lines[first:last]


def _cut(text: str, room: int) -> int:
    """Return where a long statement is best broken: before an operator, behind a comma; 0 where nowhere."""
    least = room // 3
    return max(text.rfind(" + ", least, room), text.rfind(" ? ", least, room), text.rfind(", ", least, room - 1) + 1, 0)
