"""Keep: what a candidate leaves in the session's folder: schedule, program, source, lowered value, log, feedback."""

from __future__ import annotations

import msgspec

from cake_tui.model import layout
from cake_tui.model.feedback import Feedback
from cake_tui.model.outcome import BuildFailed, TimedOut
from cake_tui.steps.build import Binaries
from cake_tui.steps.context import Context
from cake_tui.steps.plan import Plan


def plan(ctx: Context, number: int, paper: Plan) -> None:
    """Keep what will be built, run and shown."""
    ctx.folder.write(number, layout.SCHEDULE, paper.schedule.text + "\n")
    ctx.folder.write(number, layout.PROGRAM, paper.text)
    ctx.folder.write(number, layout.SOURCES[paper.full.target], paper.full.source)
    ctx.folder.write(number, layout.LOWERED, msgspec.json.encode(paper.full).decode())


def build_log(ctx: Context, number: int, binaries: Binaries) -> None:
    """Keep what the compiler said of the full build, if it said anything."""
    if binaries.full_reply.log:
        ctx.folder.write(number, layout.BUILD_LOG, binaries.full_reply.log)


def failed_build_log(ctx: Context, number: int, outcome: BuildFailed | TimedOut) -> None:
    """Keep what the compiler said before it refused or was ended; a run that was ended has no such log."""
    if outcome.step == "build":
        ctx.folder.write(number, layout.BUILD_LOG, outcome.log)


def feedback(ctx: Context, number: int, found: Feedback) -> None:
    """Keep the structured feedback, however the candidate ended."""
    ctx.folder.write(number, layout.FEEDBACK, _pretty(found))


def best(ctx: Context, number: int) -> None:
    """Put the new incumbent's files into ``best/`` in one step."""
    lowered = ctx.subjects[number].full.lowered
    row = ctx.history.rows[number]
    ctx.folder.publish(
        number,
        {
            layout.SOURCES[lowered.target]: lowered.source,
            layout.LOWERED: _pretty(lowered),
            layout.SCHEDULE: (row.schedule.text if row.schedule else "") + "\n",
        },
    )


def _pretty(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode() + "\n"
