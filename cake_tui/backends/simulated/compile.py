"""The simulated compiler, a real process: takes its time, talks, fails or hangs as its arguments say.

``python compile.py SECONDS LOG_BYTES ENDING SOURCE OUTPUT``, in the folder of both files. Standard library only.
"""

from __future__ import annotations

import hashlib
import sys
import time
from pathlib import Path

LINE = "simulated: note: nothing was compiled; this line fills the log of [/dim] candidate [red]x[/red]\n"


def compile_source(seconds: float, log_bytes: int, ending: str, source: Path, output: Path) -> int:
    """Write the stand-in of a binary beside a log of `log_bytes`; return the exit code."""
    deadline = time.monotonic() + seconds
    left = log_bytes
    while left > 0:
        left -= sys.stderr.write(LINE[:left])
    sys.stderr.flush()
    while ending == "TimedOut" or time.monotonic() < deadline:
        time.sleep(0.01 if ending != "TimedOut" else 3600.0)
    if ending == "BuildFailed":
        sys.stderr.write(f"{source.name}:1:1: error: simulated: the surface lets this schedule fail to build\n")
        return 1
    output.write_bytes(stand_in(source.read_bytes()))
    return 0


def stand_in(source: bytes) -> bytes:
    """Return what is stored in place of a binary: enough to tell two sources apart."""
    return b"simulated " + hashlib.sha256(source).hexdigest().encode() + b"\n"


if __name__ == "__main__":
    _, wait_s, size, how, from_file, to_file = sys.argv
    sys.exit(compile_source(float(wait_s), int(float(size)), how, Path(from_file), Path(to_file)))
