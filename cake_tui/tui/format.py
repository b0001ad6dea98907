"""Text for the screen: glyphs with words, lines cut to cells, and hostile text made harmless; no Textual in here.

A line is a tuple of spans, a span a text and a tone; a tone is a name that `palette` turns into a style, so
that what a pane says never depends on colour.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from rich.cells import cell_len

from cake_tui.model.ending import word_of

Span = tuple[str, str]
Line = tuple[Span, ...]

# `Row.ended_as` -> (glyph, its ASCII, tone): the same in board, plot, log and headline
_MARKS: dict[str, tuple[str, str, str]] = {
    "accepted": ("●", "@", "good"),
    "slower": ("·", ".", "dim"),
    "no_gain": ("≈", "n", "dim"),
    "coarse_only": ("∘", "o", "dim"),
    "undecided": ("?", "?", "warn"),
    "noisy": ("~", "~", "warn"),
    "Rejected": ("-", "-", "dim"),
    "Screened": ("s", "s", "dim"),
    "Repeated": ("=", "=", "dim"),
    "BuildFailed": ("b", "b", "bad"),
    "LaunchFailed": ("l", "l", "bad"),
    "Crashed": ("!", "!", "bad"),
    "TimedOut": ("t", "t", "bad"),
    "WrongAnswer": ("✗", "x", "bad"),
    "Interrupted": ("i", "i", "warn"),
    "baseline": ("○", "O", "accent"),
    "in flight": ("⋯", ":", "accent"),
}
OUTCOMES = {name: (glyph, plain, word_of(name), tone) for name, (glyph, plain, tone) in _MARKS.items()}

# What one character cannot say without another meaning takes two: a sum, a comparison and a bullet are none of these.
_ASCII = str.maketrans({
    **{chr(0x2400 + code): f"^{chr(64 + code)}" for code in range(32)}, "␊": r"\n", "␍": r"\r", "␡": "^?",
    "─": "-", "│": "|", "╭": "+", "╮": "+", "╰": "+", "╯": "+", "┄": "-", "═": "=", "├": "+", "┤": "+", "┼": "+",
    "━": "=", "▸": ">", "▾": "v", "▲": "^", "▼": "v", "●": "@", "○": "O", "∘": "o", "·": ".", "✗": "x", "⋯": ":",
    "×": "x", "±": "+-", "→": "->", "←": "<-", "↑": "^", "↓": "v", "≥": ">=", "≈": "n", "≤": "<=", "≠": "!", "°": " ",
    "█": "#", "▁": "_", "▂": "_", "▃": ".", "▄": "-", "▅": "-", "▆": "=", "▇": "=", "░": ".", "┊": ":", "╎": ":",
    "┃": "#",
})  # fmt: skip

_CUT = re.compile(r".?…")

SPARK = "▁▂▃▄▅▆▇█"


def ascii_only(text: str) -> str:
    """Replace our own symbols and whatever else is not ASCII; a cut text ends in two dots.

    The width in cells stays but for arrows, comparisons, ``±`` and control characters, which take two.
    """
    if text.isascii():
        return text
    text = _CUT.sub(lambda found: "." * len(found[0]), text.translate(_ASCII))
    return text if text.isascii() else "".join(c if c.isascii() else "?" * cell_len(c) for c in text)


@lru_cache(maxsize=4096)
def _shown(char: str) -> str:
    """One character as it may go to a terminal: controls, formats and lone surrogates are spelled out."""
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)  # control pictures, one cell each
    if code == 0x7F:
        return "\u2421"
    category = unicodedata.category(char)
    joins = 0x1F1E6 <= code <= 0x1F1FF or 0x1F3FB <= code <= 0x1F3FF  # flags and skin tones merge unevenly
    if category in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") or joins:
        return f"<{code:04x}>"
    return "" if 0xFE00 <= code <= 0xFE0F else char  # variation selectors change widths and say nothing


def visible(text: object, limit: int = 2000) -> str:
    """Return any text on one line, literally: brackets stay, control characters become visible, tabs widen.

    Longer texts end in ``…``; what a pane can show of a line is cut by cells later.
    """
    raw = str(text)
    cut = raw[:limit]
    if not (cut.isascii() and cut.isprintable()):
        cut = "".join(c if " " <= c <= "~" else _shown(c) for c in cut.replace("\t", "    "))
    return cut + "…" if len(raw) > limit else cut


def width_of(line: Line) -> int:
    """Cells that a line takes."""
    return sum(cell_len(text) for text, _ in line)


def clip(text: str, width: int) -> str:
    """Cut a text to `width` cells; a cut one ends in ``…``."""
    if len(text) <= width and text.isascii():
        return text
    if cell_len(text) <= width:
        return text
    if width <= 0:
        return ""
    out, used = [], 0
    for char in text[: width * 4]:
        size = cell_len(char)
        if used + size > width - 1:
            break
        out.append(char)
        used += size
    return "".join(out) + "…"


def pad(text: str, width: int, right: bool = False) -> str:
    """Clip and fill a text to exactly `width` cells; ``right`` aligns it to the right."""
    text = clip(text, width)
    space = " " * max(0, width - cell_len(text))
    return space + text if right else text + space


def fit(line: Line, width: int) -> Line:
    """Cut and fill a line to exactly `width` cells."""
    out: list[Span] = []
    left = width
    for text, tone in line:
        if left <= 0:
            break
        size = cell_len(text)
        if size > left:
            text = clip(text, left)
            size = cell_len(text)
        if text:
            out.append((text, tone))
        left -= size
    if left > 0:
        out.append((" " * left, ""))
    return tuple(out)


def spread(left: Line, right: Line, width: int) -> Line:
    """Put `left` at the left and `right` at the right end; the right one gives way where both do not fit."""
    room = width - width_of(left) - 1
    size = width_of(right)
    if size > room:
        return fit(left, width)
    return (*left, (" " * (room + 1 - size), ""), *right)


def shifted(line: Line, left: int) -> Line:
    """A line without its first `left` characters."""
    if left <= 0:
        return line
    out: list[Span] = []
    for text, tone in line:
        out.append((text[left:], tone))
        left = max(0, left - len(text))
    return tuple(out)


def wrap(text: str, width: int, indent: int = 0) -> list[str]:
    """Break a text at blanks into lines of at most `width` cells; words that are longer are broken hard."""
    out: list[str] = []
    line = ""
    for word in text.split(" "):
        room = width - (indent if out else 0)
        while cell_len(word) > room > 0:
            head = clip(word, room + 1)[:-1] or word[:1]
            if line:
                out.append(line)
                line = ""
            out.append(head)
            word = word[len(head) :]
            room = width - indent
        if line and cell_len(line) + 1 + cell_len(word) > room:
            out.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    out.append(line)
    return [out[0], *(" " * indent + rest for rest in out[1:])]


def clock(stamp: str) -> str:
    """``14:31:07`` of an ISO time; anything else is shown as it is, cut."""
    return stamp[11:19] if len(stamp) >= 19 and stamp[10] == "T" else visible(stamp, 8)


def spark(values: Iterable[float | None], width: int) -> str:
    """The last `width` values as blocks between their least and greatest (a tenth at least); unknown ones are blank."""
    tail = list(values)[-width:] if width > 0 else []
    known = [v for v in tail if v is not None and math.isfinite(v)]
    if not known:
        return " " * max(0, width)
    low, high = min(known), max(known)
    # A tenth of the size is the least span: a steady reading shall look steady.
    span = max(high - low, 0.1 * abs(high))
    low = (high + low - span) / 2
    blocks = []
    for value in tail:
        if value is None or not math.isfinite(value):
            blocks.append(" ")
        elif span <= 0:
            blocks.append(SPARK[3])
        else:
            blocks.append(SPARK[min(7, int((value - low) / span * 8))])
    return "".join(blocks).rjust(width)


def outcome_mark(name: str) -> tuple[str, str, str]:
    """(glyph, word, tone) of an outcome or verdict; names of newer versions show as themselves."""
    if name in OUTCOMES:
        glyph, _, word, tone = OUTCOMES[name]
        return glyph, word, tone
    return "?", visible(name, 14), ""
