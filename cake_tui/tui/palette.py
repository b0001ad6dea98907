"""Tones and their styles: the terminal's own sixteen colours, so that light, dark and small palettes all work."""

from __future__ import annotations

from rich.style import Style

# Bold, dim, reverse and underline carry the meaning where colours are off; words and glyphs carry it everywhere.
STYLES: dict[str, Style] = {
    "": Style(),
    "strong": Style(bold=True),
    "dim": Style(dim=True),
    "good": Style(color="green"),
    "goodword": Style(color="green", bold=True),
    "bad": Style(color="red"),
    "badword": Style(color="red", bold=True),
    "warn": Style(color="yellow"),
    "warnword": Style(color="yellow", bold=True),
    "accent": Style(color="cyan"),
    "accentword": Style(color="cyan", bold=True),
    "rule": Style(dim=True),
    "focus": Style(color="cyan", bold=True),
    "key": Style(bold=True, underline=True),
    "select": Style(reverse=True),
    "keyword": Style(color="blue", bold=True),
    "type": Style(color="cyan"),
    "string": Style(color="green"),
    "number": Style(color="magenta"),
    "comment": Style(dim=True, italic=True),
    "preproc": Style(color="yellow"),
    "added": Style(color="green"),
    "removed": Style(color="red"),
}


# Yellow and cyan are hardly to be read on white.
_DARKER = {"yellow": "magenta", "cyan": "blue", "magenta": "red"}
LIGHT: dict[str, Style] = {
    tone: style + Style(color=_DARKER[style.color.name])
    for tone, style in STYLES.items()
    if style.color is not None and style.color.name in _DARKER
}


def style(tone: str, light: bool = False) -> Style:
    """Return the style of a tone, for a `light` ground where wanted; a trailing ``!`` reverses it (a selected line)."""
    name = tone.removesuffix("!")
    found = LIGHT.get(name) if light else None
    found = found or STYLES.get(name, STYLES[""])
    return found + STYLES["select"] if tone.endswith("!") else found
