"""Figures kept in one file, a JSON line a run, each compared with the last of its benchmark on this kind of machine."""

from __future__ import annotations

import datetime
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results.jsonl")


def machine() -> str:
    """The processor's name and how many of them: what figures may be compared on."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").is_file() else ""
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return f"{names[0] if names else 'unknown'} x {len(names) or 1}"


def last(benchmark: str, path: Path = RESULTS) -> dict[str, Any] | None:
    """Return the newest figures of a benchmark on this machine, or None."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for line in reversed(lines):
        kept: dict[str, Any] = json.loads(line)
        if kept["benchmark"] == benchmark and kept["machine"] == machine():
            return kept
    return None


def keep(benchmark: str, figures: Mapping[str, Any], path: Path = RESULTS) -> None:
    """Append a run's figures with machine, commit and date."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    header = {
        "benchmark": benchmark,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit.stdout.strip(),
        "machine": machine(),
    }
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**header, **figures}) + "\n")


def show(benchmark: str, figures: Mapping[str, Any], wanted: Mapping[str, str]) -> None:
    """Print the figures beside what is wanted and the last ones kept."""
    before = last(benchmark)
    since = f"{before['date'][:10]} {before['commit']}" if before else "nothing kept on this machine yet"
    print(f"{benchmark}  (last: {since})")
    for name, value in figures.items():
        old = "" if before is None else f"last {_text(before.get(name))}"
        print(f"  {name:<34} {_text(value):>12}  {wanted.get(name, ''):<24} {old}")


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
