"""Every key of a TOML text has its line and its span, whatever form it is written in."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_tui.errors import UserError
from cake_tui.toml import Document, parse_document
from cake_tui.toml.scanner import Key

SCALARS = st.one_of(
    st.text(max_size=12), st.integers(-(10**9), 10**9), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)
)
KEYS = st.text(min_size=1, max_size=6)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
TABLES = st.dictionaries(KEYS, VALUES, max_size=5)


def parsed(text: str) -> Document | UserError:
    try:
        return parse_document(text, "x.toml")
    except UserError as error:
        return error


def every_key(value: Any, path: Key = ()) -> Iterator[tuple[Key, Any]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in pairs:
        yield (*path, key), inner
        if isinstance(inner, dict | list):
            yield from every_key(inner, (*path, key))


@settings(max_examples=150, deadline=None)
@given(TABLES, st.booleans(), st.booleans())
def test_every_key_of_any_document_has_a_place_and_values_stand_in_their_span(
    table: dict[str, Any], multiline: bool, windows: bool
) -> None:
    text = tomli_w.dumps(table, multiline_strings=multiline)
    if windows and "\r" not in text:
        text = text.replace("\n", "\r\n")
    document = parse_document(text, "x.toml")
    for path, value in every_key(document.value):
        place = document.places[path]
        assert 1 <= place.line <= text.count("\n") + 1
        if place.start >= 0:
            assert tomllib.loads(f"v = {text[place.start : place.end]}\n")["v"] == value


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60) | st.text(alphabet="[]{}=\"'.,#\n ab1\\", max_size=40))
def test_any_text_parses_or_gives_one_clear_line(text: str) -> None:
    found = parsed(text)
    if isinstance(found, Document):
        assert found.value == tomllib.loads(text)
    else:
        assert len(str(found).split("\n")) == 1
        assert str(found).startswith("x.toml")
        assert found.exit_code == 2


FORMS = """\
# a comment
title = "x"                 # = another [comment]

[[action]]
name = 'a # b'
edits = [
  { do = "tiling", tile_size = "$t" },

  # between
  { do = "unroll", factor = 4 }, ]
parameters.c.t = [1, 2]
"quoted . key".inner = 1
long = \"\"\"
[[action]]
name = 3
\\\"\"\" \"\"\"\"

[[action]]
name = "second"
  [action.parameters]
  c = { t = [16,
    32] }

[other.'deep']
when = 1979-05-27 07:32:00
"""


def line_of(document: Document, *path: str | int) -> int:
    return document.line(path)


def test_lines_of_every_form() -> None:
    document = parse_document(FORMS, "x.toml")
    assert line_of(document, "title") == 2
    assert line_of(document, "action", 0) == 4
    assert line_of(document, "action", 0, "name") == 5
    assert line_of(document, "action", 0, "edits", 0, "tile_size") == 7
    assert line_of(document, "action", 0, "edits", 1, "do") == 10
    assert line_of(document, "action", 0, "parameters", "c", "t", 1) == 11
    assert line_of(document, "action", 0, "quoted . key", "inner") == 12
    assert line_of(document, "action", 0, "long") == 13
    assert line_of(document, "action", 1) == 18
    assert line_of(document, "action", 1, "parameters") == 20
    assert line_of(document, "action", 1, "parameters", "c", "t", 1) == 22
    assert line_of(document, "other", "deep", "when") == 25
    place = document.places[("other", "deep", "when")]
    assert FORMS[place.start : place.end] == "1979-05-27 07:32:00"


def test_a_key_that_is_not_there_has_the_line_of_its_table() -> None:
    document = parse_document(FORMS, "x.toml")
    assert document.line(("action", 1, "hints", 3)) == 18
    assert document.line(("nothing",)) == 1


@pytest.mark.parametrize("depth", [40, 5000])
def test_deep_nesting_ends_in_a_line_or_a_value(depth: int) -> None:
    found = parsed(f"a = {'[' * depth}{']' * depth}")
    if depth == 40:
        assert isinstance(found, Document)
    else:
        assert "nested too deeply" in str(found)
