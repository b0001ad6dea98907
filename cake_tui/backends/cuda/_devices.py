"""A process that lists the GPUs and ends: prints one line of JSON."""

from __future__ import annotations

import sys

import msgspec

from cake_tui.backends.cuda.devices import look

if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(look()).decode() + "\n")
