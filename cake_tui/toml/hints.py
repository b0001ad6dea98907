"""Says what is wrong with a line that is no TOML, in words that tell how to mend it."""

from __future__ import annotations

import re

from cake_tui.toml.scanner import Key, Scanner, Unreadable

_PAIR = re.compile(r"\s*(?P<key>[^=#]*?)\s*=\s*(?P<value>[^#]*?)\s*(?:#.*)?$")
_WORD = re.compile(r"^[A-Za-z_./~$][\w./+~$-]*$")
_LOWER = {"True": "true", "False": "false", "TRUE": "true", "FALSE": "false", "Yes": "true", "No": "false"}
_PLAIN = {
    "Unterminated string": 'a string is not closed: its last " is missing',
    "Expected newline or end of document after a statement": "a line is one KEY = VALUE, behind it only a # comment",
}
_NOTHING = ("null", "None", "nil", "NULL", "~")


def hint(text: str, line: int, message: str) -> tuple[int, str]:
    """Return the line to show and the hint for tomllib's `message` about `line`."""
    scanner = Scanner(text)
    try:
        scanner.scan()
    except (Unreadable, RecursionError):
        if message.startswith(("Unclosed", "Unterminated")) and scanner.open_lines:
            began = scanner.open_lines[-1]
            return began, f"what begins here is not closed before line {line}"
    if message.startswith("Cannot"):
        repeated = _repeated(scanner, line)
        if repeated is not None:
            return line, repeated
    lines = text.split("\n")
    return line, _of_line(lines[line - 1] if 0 < line <= len(lines) else "", message)


def _repeated(scanner: Scanner, line: int) -> str | None:
    """Where the key or table stood first that `line` gives again."""
    near = [key for key, second in scanner.twice.items() if second == line]
    if not near:
        return None
    first = scanner.places[near[0]].line
    return f"{spelled(near[0])} stands twice, first in line {first}; keep one of them"


def _of_line(line: str, message: str) -> str:
    if re.search(r"[“”‘’„]", line):
        return 'typographic quotes; strings need plain quotes: "..."'
    pair = _PAIR.match(line)
    if pair is None:
        if re.match(r"\s*\[", line):
            return "a table's header is [name], an array of tables' is [[name]]"
        if ":" in line:
            return "a key is given its value by =, not by a colon"
        return "a line is KEY = VALUE, [TABLE], [[ARRAY OF TABLES]] or a # comment"
    words = [word.strip() for word in re.split(r"[\[\]{},]", pair["value"])]
    words = [word.rpartition("=")[2].strip() for word in words if word]
    for word in words:
        if word in _LOWER:
            return f"true and false are lower case: {_LOWER[word]}"
        if word in _NOTHING:
            return "TOML has no null: leave the key out"
    if message.startswith("Unescaped '\\'"):
        return "a backslash in double quotes needs another; single quotes take it as it is: '...'"
    bare = next((word for word in words if _WORD.match(word) and word not in ("true", "false", "inf", "nan")), None)
    if bare is not None:
        return f'strings need quotes: "{bare}"'
    if not pair["value"]:
        return "the value is missing"
    if re.match(r"[^\"']*\s[^\"']*$", pair["key"]) and "." not in pair["key"]:
        return f'a key with blanks needs quotes: "{pair["key"]}"'
    return _PLAIN.get(message, message[:1].lower() + message[1:])


def spelled(path: Key) -> str:
    """Write a key path the way the file would: ``parameters.c.m``, numbers of array elements in brackets."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part + 1}]"
        else:
            word = (
                part
                if re.fullmatch(r"[A-Za-z0-9_-]+", part)
                else '"' + part[:60].encode("unicode_escape").decode() + '"'
            )
            text += f".{word}" if text else word
    return text
