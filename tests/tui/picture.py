"""Draws a running app's screen as SVG: rows of text runs on a dark ground, no fonts fetched, same text same bytes."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

from rich.cells import cell_len
from rich.color import Color, ColorType
from rich.segment import Segment
from rich.style import Style

from cake_tui.tui.app import CakeApp

CELL_W, CELL_H, FONT = 8.4, 18, 14
MARGIN = 12
GROUND, INK = "#16181d", "#d3d7de"
DIM = 0.58
NAMED = (
    "#16181d", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d3d7de",
    "#5c6370", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#ffffff",
)  # fmt: skip


def rows_of(app: CakeApp) -> list[list[Segment]]:
    """The screen as rows of segments, dialogs included."""
    width, height = app.size
    compositor = app.screen._compositor
    update: Any = compositor.render_update(full=True, screen_stack=app._background_screens)
    rows = [[segment for strip in row for segment in strip] for row in update.strips]
    assert len(rows) == height
    assert all(sum(segment.cell_length for segment in row) == width for row in rows)
    return rows


def text_of(app: CakeApp) -> str:
    """The screen as plain text."""
    return "\n".join("".join(segment.text for segment in row).rstrip() for row in rows_of(app))


def svg_of(app: CakeApp) -> str:
    """The screen as SVG text."""
    rows = rows_of(app)
    columns = app.size.width
    width, height = columns * CELL_W + 2 * MARGIN, len(rows) * CELL_H + 2 * MARGIN
    fonts = "Fira Code, DejaVu Sans Mono, Menlo, Consolas, monospace"
    plain = "style=\"font-variant-ligatures:none;font-feature-settings:'liga' 0,'calt' 0\""  # a <- is no arrow
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" role="img">',
        f'<rect width="{width:g}" height="{height:g}" rx="8" fill="{GROUND}"/>',
        f'<g font-family="{fonts}" font-size="{FONT}" fill="{INK}" {plain}>',
    ]
    for y, row in enumerate(rows):
        out += _row(row, MARGIN + y * CELL_H)
    return "\n".join([*out, "</g>", "</svg>", ""])


def _row(row: list[Segment], top: float) -> list[str]:
    out: list[str] = []
    column = 0
    for text, style, _ in row:
        out += _run(text, style or Style(), MARGIN + column * CELL_W, top)
        column += cell_len(text)
    return out


def _run(text: str, style: Style, left: float, top: float) -> list[str]:
    ink, ground = _colour(style.color, INK), _colour(style.bgcolor, GROUND)
    if style.reverse:
        ink, ground = ground, ink
    if style.dim:
        ink = _mix(ink, ground, DIM)
    out = []
    if ground != GROUND:
        wide = cell_len(text) * CELL_W
        out.append(f'<rect x="{left:g}" y="{top}" width="{wide:g}" height="{CELL_H}" fill="{ground}"/>')
    # Blanks are not drawn: each word stands at its own place, whatever a renderer does with spaces.
    at = 0
    for word in text.split(" "):
        # Long words go in pieces: a renderer's own advance must not add up.
        for begin in range(0, len(word), 12):
            piece = word[begin : begin + 12]
            out.append(_word(piece, style, ink, left + at * CELL_W, top))
            at += cell_len(piece)
        at += 1
    return out


def _word(word: str, style: Style, ink: str, left: float, top: float) -> str:
    extra = "" if ink == INK else f' fill="{ink}"'
    extra += ' font-weight="bold"' if style.bold else ""
    extra += ' font-style="italic"' if style.italic else ""
    extra += ' text-decoration="underline"' if style.underline else ""
    size = cell_len(word) * CELL_W
    return (
        f'<text x="{left:g}" y="{top + 13.5:g}" textLength="{size:g}" lengthAdjust="spacingAndGlyphs"{extra}>'
        f"{escape(word)}</text>"
    )


def _colour(color: Color | None, default: str) -> str:
    if color is None or color.type == ColorType.DEFAULT:
        return default
    if color.number is not None and color.number < 16:
        return NAMED[color.number]
    return color.get_truecolor().hex


def _mix(ink: str, ground: str, share: float) -> str:
    pairs = [(int(ink[i : i + 2], 16), int(ground[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(a * share + b * (1 - share)):02x}" for a, b in pairs)
