"""Machine-readable output: JSON as UTF-8 bytes, whatever the terminal's locale."""

from __future__ import annotations

import sys
from typing import Any

import msgspec


def print_json_line(value: Any) -> None:
    """Write a value as one line of JSON to stdout, at once."""
    sys.stdout.flush()
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
    sys.stdout.buffer.flush()


def print_json(value: Any) -> None:
    """Write a value (plain or one of the model's) as indented JSON and a newline to stdout."""
    encoded = msgspec.json.format(msgspec.json.encode(value), indent=2)
    sys.stdout.flush()
    sys.stdout.buffer.write(encoded + b"\n")
    sys.stdout.flush()
