"""A short process that lists the GPUs: the driver's state ends with it. A UUID behind it: and makes a context there."""

from __future__ import annotations

import sys

import msgspec

from cake_tui.backends.cuda.devices import look

if __name__ == "__main__":
    found = look(use=sys.argv[1] if sys.argv[1:] else None)
    sys.stdout.write(msgspec.json.encode(found).decode())
