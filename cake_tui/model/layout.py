"""Names of the files of a session and of its candidates, for whoever writes or reads them."""

from __future__ import annotations

from cake_tui.model.device import Target

# --- in a session's folder ------------------------------------------------------------------------------

SETTINGS = "session.toml"
JOURNAL = "journal.jsonl"
SNAPSHOT = "snapshot.json"
TELEMETRY = "telemetry.jsonl"
LOG = "engine.log"
LOCK = "lock"
INBOX = "inbox"
START = "start.json"  # candidate 0, where it is not the kernel's first schedule
BUILDS = "build"  # an executor's cache
BEST = "best"
CANDIDATES = "candidates"

# --- in a candidate's folder, and in ``best/`` ------------------------------------------------------------

SCHEDULE = "schedule.txt"
PROGRAM = "program.cake"
SOURCES: dict[Target, str] = {"c": "kernel.c", "cuda": "kernel.cu"}
LOWERED = "lowered.json"  # source, options, architecture and launch plans
BUILD_LOG = "build.log"
FEEDBACK = "feedback.json"
