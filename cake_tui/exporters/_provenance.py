"""What a standalone file says of itself: one JSON value, wrapped into comment lines that people can scroll past.

Files of the first form have it on one line, behind ``// cake-tui export 1``.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from cake_tui.errors import UserError

MARK = "// cake-tui export 2"
LAST = "// end of provenance"
_FIRST_FORM = "// cake-tui export 1 "
_BEGIN = "// "
_HASH = "text_sha256"
WIDTH = 120


def wrapped(plain: dict[str, Any], before: str, behind: str) -> str:
    """Return the comment lines; joined again they are the JSON, letter for letter.

    With it goes the hash of itself and of what stands around it, so that `read` sees any change.
    """
    stated = {**plain, _HASH: _hash(plain, before, behind)}
    text = json.dumps(stated, sort_keys=True, ensure_ascii=True)
    lines = [MARK]
    while text:
        piece = text[: WIDTH - len(_BEGIN)]
        comma = piece.rfind(", ") + 1
        if len(piece) < len(text) and comma > WIDTH // 2:
            piece = piece[:comma]
        # Neither a blank at a line's end, which editors cut off, nor a backslash, which would join two lines.
        piece = piece.rstrip(" \\") if piece != text else piece
        lines.append(_BEGIN + piece)
        text = text[len(piece) :]
    return "\n".join([*lines, LAST, ""])


def read(text: str) -> tuple[dict[str, Any], bool]:
    """Return what a file says of itself, and whether all of it is as it was written.

    Raises UserError where it says nothing, or nothing whole. A file of the first form states no hash of itself.
    """
    lines = text.split("\n")
    first = next((at for at, line in enumerate(lines) if line == MARK or line.startswith(_FIRST_FORM)), None)
    if first is None:
        raise UserError(f'not an export of cake-tui: no line that begins with "{MARK}"')
    told = lines[first][len(_FIRST_FORM) :]
    if lines[first] == MARK:
        behind = lines[first + 1 :]
        if LAST not in behind:
            raise UserError(f'the export\'s provenance is damaged: no line "{LAST}"')
        told = "".join(line[len(_BEGIN) :] for line in behind[: behind.index(LAST)])
    try:
        plain = json.loads(told)
    except ValueError as error:
        raise UserError(f"the export's provenance is damaged: {error}") from None
    if not isinstance(plain, dict):
        raise UserError("the export's provenance is damaged: not an object")
    stated = plain.pop(_HASH, None)
    before, _, rest = text.partition(f"{MARK}\n")
    return plain, lines[first] != MARK or stated == _hash(plain, before, rest.partition(f"{LAST}\n")[2])


def _hash(plain: dict[str, Any], before: str, behind: str) -> str:
    words = json.dumps(plain, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(f"{before}\0{words}\0{behind}".encode()).hexdigest()
