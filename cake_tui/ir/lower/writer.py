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
        self.writer.line(f"{self.head} {{".lstrip())
        self.writer.depth += 1

    def __exit__(self, *failure: object) -> None:
        writer = self.writer
        writer.depth -= 1
        lines, first = writer.lines, self.at + 1
        margin = "  " * (writer.depth + 1)
        end = f"{margin}}}"
        if lines[-1] == end and lines[first] == f"{margin}{{" and lines.index(end, first) == len(lines) - 1:
            # Braces right inside braces.
            lines[first:] = outdented(lines[first + 1 : -1])
            writer.line("}")
        elif len(lines) == first + 1 and self.head.startswith(("for", "if")) and lines[first].endswith(";"):
            lines[self.at] = lines[self.at][:-2]
        else:
            writer.line("}")


_DECLARES = re.compile(r"(?:const |unsigned |float |double |int |long |f16 |bf16 )")


class _Scope:
    """Braces that stay only where something is declared between them: what `Writer.scope` gives."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.at = 0

    def __enter__(self) -> None:
        self.at = len(self.writer.lines)
        self.writer.line("{")
        self.writer.depth += 1

    def __exit__(self, *failure: object) -> None:
        writer = self.writer
        margin = "  " * writer.depth
        writer.depth -= 1
        inside = writer.lines[self.at + 1 :]
        if any(line.startswith(margin) and _DECLARES.match(line, len(margin)) for line in inside):
            writer.line("}")
        else:
            writer.lines[self.at :] = outdented(inside)


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

    def scope(self) -> _Scope:
        """Add braces around what declares variables of its own, none around what does not."""
        return _Scope(self)

    def otherwise(self) -> None:
        """Join an else to the if block that just ended: its closing brace must still be there."""
        if self.lines[-1].strip() != "}":
            last = self.lines.pop()
            self.lines[-1] += " {"
            self.lines += [last, f"{'  ' * self.depth}}}"]
        self.lines.pop()

    def keep_place(self) -> int:
        """Keep a place for lines that come to mind later; `put` adds them there."""
        self.lines.append("")
        return len(self.lines) - 1

    def put(self, place: int, depth: int, text: str) -> None:
        """Add a line at a kept place; its number stays one, so that numbers of lines behind it do not change."""
        line = f"{'  ' * depth}{text}"
        self.lines[place] = f"{self.lines[place]}\n{line}" if self.lines[place] else line

    def drop_unused(self, name: str, first: int, last: int) -> None:
        """Take out lines [first, last), a declaration, where nothing behind them names it."""
        word = re.compile(rf"\b{re.escape(name)}\b")
        if not any(name in line and word.search(line) for line in self.lines[last:]):
            del self.lines[first:last]


def outdented(lines: list[str]) -> list[str]:
    """Return lines one margin further left."""
    return ["\n".join(part[2:] for part in line.split("\n")) for line in lines]


def _cut(text: str, room: int) -> int:
    """Return where a long statement is best broken: before an operator, behind a comma; 0 where nowhere."""
    least = room // 3
    return max(text.rfind(" + ", least, room), text.rfind(" ? ", least, room), text.rfind(", ", least, room - 1) + 1, 0)
