"""Text that is no TOML: the line is shown, with a hint that says how to mend it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cake_tui.errors import UserError
from cake_tui.toml import parse_document, read_document

MISTAKES = [
    ("backend = nvrtc", 1, 'strings need quotes: "nvrtc"'),
    ("a = 1\nb = [x86-64]", 2, 'strings need quotes: "x86-64"'),
    ('e = [{ do = tiling, t = "$t" }]', 1, 'strings need quotes: "tiling"'),
    ("enabled = True", 1, "true and false are lower case: true"),
    ("a = 1\n\nenabled = False  # off", 3, "true and false are lower case: false"),
    ("a = [true, True]", 1, "true and false are lower case: true"),
    ("peer = None", 1, "TOML has no null"),
    ("a = 1\n[t]\na = 2\na = 3", 4, "t.a stands twice, first in line 3"),
    ("[t]\na = 2\n[u]\n[t]\nb = 1", 4, "t stands twice, first in line 1"),
    ("shape: 3", 1, "not by a colon"),
    ("x =", 1, "the value is missing"),
    ("x = “y”", 1, "plain quotes"),
    ('x = "y', 1, "not closed"),
    ('x = "C:\\quick"', 1, "single quotes"),
    ("x = [1,\n  2\n\ny = 3\n", 1, "not closed before line 4"),
    ('x = """\nabc\n', 1, "not closed"),
    ("[[action]", 1, "[[name]]"),
    ("number of parts = 3", 1, '"number of parts"'),
    ("apply everything", 1, "KEY = VALUE"),
    ("a = 1 b = 2", 1, "one KEY = VALUE"),
]


@pytest.mark.parametrize(("text", "line", "hint"), MISTAKES)
def test_a_syntax_error_shows_the_line_and_a_hint(text: str, line: int, hint: str) -> None:
    with pytest.raises(UserError) as found:
        parse_document(text, "actions.toml")
    message = str(found.value)
    assert message.startswith(f"actions.toml:{line}: cannot read `{text.splitlines()[line - 1].strip()}`")
    assert hint in message
    assert found.value.exit_code == 2


def test_windows_line_ends_count_like_others() -> None:
    with pytest.raises(UserError, match=r"^x\.toml:3: .*strings need quotes"):
        parse_document("a = 1\r\n\r\nb = two\r\n", "x.toml")


def test_a_number_of_thousands_of_digits_is_one_line() -> None:
    with pytest.raises(UserError, match=r"^x\.toml: not valid TOML"):
        parse_document(f"a = {'7' * 10_000}", "x.toml")


FILES = {
    "missing": (None, "no such file"),
    "bom": (b"\xef\xbb\xbfa = 1\n", ""),
    "latin": ("a = 1\n# sch\u00f6n\n".encode("latin-1"), ":2: not UTF-8 (byte 0xf6)"),
    "utf16": ("a = 1\n".encode("utf-16"), "UTF-16"),
    "rubbish": (bytes(range(256)) * 4, "x.toml:1: "),
    "huge": (b"# " + b"x" * 1_100_000, "larger than"),
    "empty": (b"", ""),
}


@pytest.mark.parametrize("name", FILES)
def test_any_file_is_read_or_refused_in_one_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    content, said = FILES[name]
    path = Path("x.toml")
    if content is not None:
        path.write_bytes(content)
    if not said:
        assert read_document(path).value in ({"a": 1}, {})
        return
    with pytest.raises(UserError) as found:
        read_document(path)
    assert said in str(found.value)
    assert len(str(found.value).splitlines()) == 1


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    for name, said in (("pipe", "not a regular file"), ("folder", "a folder stands"), ("loop", "cannot be read")):
        with pytest.raises(UserError, match=said):
            read_document(tmp_path / name)
    with pytest.raises(UserError, match="not a regular file"):
        read_document(Path("/dev/zero"))
