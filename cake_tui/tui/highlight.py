"""C and CUDA text into toned lines, once per text, in a thread that never keeps the process alive; diffs of two."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable

from cake_tui.tui import format as fmt
from cake_tui.tui.format import Line

LINES_LIMIT = 5_000
BYTES_LIMIT = 256 << 10
DIFF_LINES = 3_000  # of each; difflib is quadratic where little is alike

# Pygments' token names begin with these; the first that fits gives the tone.
_TONES = (
    ("Comment.Preproc", "preproc"), ("Comment", "comment"), ("Keyword.Type", "type"), ("Keyword", "keyword"),
    ("Literal.Number", "number"), ("Literal.String", "string"), ("Name.Builtin", "type"),
)  # fmt: skip


def plain(text: str) -> list[Line]:
    """Lines without tones; control characters are made visible, tabs become four blanks."""
    return [((fmt.visible(line), ""),) for line in text.splitlines()]


def coloured(text: str, language: str) -> list[Line]:
    """Lines with tones; texts beyond the limits come back plain."""
    if len(text) > BYTES_LIMIT or text.count("\n") >= LINES_LIMIT:
        return plain(text)
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]  # 50 ms: only where needed

    lines: list[Line] = []
    spans: list[tuple[str, str]] = []
    lexer = get_lexer_by_name("cuda" if language == "cuda" else "c", stripnl=False, ensurenl=False)
    for token, value in lexer.get_tokens("\n".join(text.splitlines())):
        tone = _tone(str(token).removeprefix("Token."))
        for index, piece in enumerate(value.split("\n")):
            if index:
                lines.append(tuple(spans))
                spans = []
            if piece:
                spans.append((fmt.visible(piece), tone))
    lines.append(tuple(spans))
    return lines


def source_diff(old: str, new: str, old_number: int, new_number: int) -> list[Line]:
    """A unified diff of two candidates' sources."""
    before, after = old.splitlines()[:DIFF_LINES], new.splitlines()[:DIFF_LINES]
    lines: list[Line] = []
    for line in difflib.unified_diff(before, after, f"#{old_number}", f"#{new_number}", n=3, lineterm=""):
        tone = {"+": "added", "-": "removed", "@": "accent"}.get(line[:1], "")
        lines.append(((fmt.visible(line), tone),))
    if max(old.count("\n"), new.count("\n")) > DIFF_LINES:
        lines.append(((f" only the first {DIFF_LINES:,} lines are compared", "warn"),))
    return lines or [((" the sources are equal", "dim"),)]


def _tone(token: str) -> str:
    return next((tone for name, tone in _TONES if token.startswith(name)), "")


class Highlighter:
    """Keeps the toned lines of one text; `lines` gives plain ones until the thread has done its work."""

    def __init__(self) -> None:
        self._of: tuple[str, str] | None = None
        self._lines: list[Line] = []
        self._thread: threading.Thread | None = None

    def lines(self, text: str, language: str, ready: Callable[[], None]) -> list[Line]:
        """Return lines now; `ready` is called from another thread when better ones are there."""
        wanted = (text, language)
        if wanted != self._of:
            self._of, self._lines = wanted, plain(text)
            self._thread = threading.Thread(
                target=self._colour, args=(text, language, ready), daemon=True, name="highlight"
            )
            self._thread.start()
        return self._lines

    def settle(self) -> None:
        """Wait for the thread (pictures are drawn of a settled screen)."""
        if self._thread is not None:
            self._thread.join()

    def _colour(self, text: str, language: str, ready: Callable[[], None]) -> None:
        lines = coloured(text, language)
        if self._of == (text, language):
            self._lines = lines
            ready()
