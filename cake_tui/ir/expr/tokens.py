"""Tokens of the IR's text: one lexer for program lines and for expressions in kernel.toml."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

_TOKEN = re.compile(
    r"(?P<space>[ ]+)"
    r"|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<sign>\.\.|\+:|->|\+=|<=|>=|==|!=|[-+*/%<>=()\[\],:.])"
)
LONGEST_LINE = 4000
LONGEST_NUMBER = 30


class ParseError(ValueError):
    """Text that is not in the grammar: `line` and `column` count from 1, `found` and `expected` say the rest."""

    def __init__(self, line: int, column: int, found: str, expected: str) -> None:
        super().__init__(f"line {line}, column {column}: found {found}, expected {expected}")
        self.line = line
        self.column = column
        self.found = found
        self.expected = expected


class Token(msgspec.Struct, frozen=True):
    """One word, number or sign; `kind` is ``name``, ``number``, ``sign`` or ``end``."""

    kind: str
    text: str
    column: int


def tokens_of(text: str, line: int = 1, offset: int = 0) -> tuple[Token, ...]:
    """Split one line into tokens, an ``end`` token last; raises ParseError for a character outside the grammar."""
    if len(text) > LONGEST_LINE:
        raise ParseError(line, LONGEST_LINE, f"a line of {len(text)} characters", f"at most {LONGEST_LINE}")
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ParseError(line, offset + at + 1, repr(text[at]), "a name, a number or an operator")
        kind = match.lastgroup or ""
        if kind == "number" and len(match.group()) > LONGEST_NUMBER:
            raise ParseError(line, offset + at + 1, "a number of many digits", f"at most {LONGEST_NUMBER} characters")
        if kind != "space":
            found.append(Token(kind, match.group(), offset + at + 1))
        at = match.end()
    found.append(Token("end", "", offset + len(text) + 1))
    return tuple(found)


class Cursor:
    """A place within one line's tokens; what the parsers advance."""

    def __init__(self, tokens: tuple[Token, ...], line: int) -> None:
        self.tokens = tokens
        self.line = line
        self.at = 0

    @property
    def now(self) -> Token:
        """The token to be read next."""
        return self.tokens[self.at]

    @property
    def ended(self) -> bool:
        """Whether the whole line has been read."""
        return self.now.kind == "end"

    def sees(self, *texts: str) -> bool:
        """Whether the next token is one of `texts`."""
        return self.now.kind != "end" and self.now.text in texts

    def ahead(self, steps: int) -> str:
        """Return the text of a later token, empty beyond the end."""
        return self.tokens[min(self.at + steps, len(self.tokens) - 1)].text

    def take(self) -> Token:
        """Return the next token and go on."""
        token = self.now
        if token.kind != "end":
            self.at += 1
        return token

    def accept(self, *texts: str) -> str | None:
        """Read the next token where it is one of `texts`; None otherwise."""
        return self.take().text if self.sees(*texts) else None

    def expect(self, *texts: str) -> str:
        """Read one of `texts`; raises ParseError otherwise."""
        if not self.sees(*texts):
            raise self.error(" or ".join(repr(text) for text in texts))
        return self.take().text

    def name(self, what: str, reserved: Iterable[str] = ()) -> str:
        """Read a name that is no reserved word; raises ParseError otherwise."""
        if self.now.kind != "name":
            raise self.error(what)
        if self.now.text in reserved:
            raise self.error(f"{what}, and {self.now.text} is a word of the grammar")
        return self.take().text

    def integer(self, what: str) -> int:
        """Read a whole number without a sign; raises ParseError otherwise."""
        if self.now.kind != "number" or not self.now.text.isdecimal():
            raise self.error(what)
        return int(self.take().text)

    def one_of(self, words: Iterable[str], what: str) -> str:
        """Read one word of a closed list; raises ParseError naming the list."""
        known = tuple(words)
        if not self.sees(*known):
            raise self.error(f"{what}: {' '.join(known)}")
        return self.take().text

    def error(self, expected: str) -> ParseError:
        """Make the error for what stands here."""
        token = self.now
        found = "the end of the line" if token.kind == "end" else repr(token.text)
        return ParseError(self.line, token.column, found, expected)
