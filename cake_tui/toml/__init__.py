"""TOML files that people write: read with the line of every key, all mistakes at once, and edited in place."""

from cake_tui.toml.document import Added, Document, parse_document, read_document, read_text, shown_path
from cake_tui.toml.reader import Mistakes, Table, shown
from cake_tui.toml.scanner import Key

__all__ = [
    "Added",
    "Document",
    "Key",
    "Mistakes",
    "Table",
    "parse_document",
    "read_document",
    "read_text",
    "shown",
    "shown_path",
]
