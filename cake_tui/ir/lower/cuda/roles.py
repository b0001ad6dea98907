"""Warp roles in CUDA C++: branches on the thread's number, each with its own body, registers and phases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cake_tui.ir.analysis.barriers import starts_open
from cake_tui.ir.expr import Name, Number
from cake_tui.ir.lower.cuda.asynchronous import MOST_SLOTS
from cake_tui.ir.lower.cuda.blocks import open_tiles
from cake_tui.ir.lower.cuda.frame import CudaFrame, Team
from cake_tui.ir.lower.cuda.groups import Band, merged, shared_roles
from cake_tui.ir.lower.cuda.statements import declare_registers, lower_body
from cake_tui.ir.lower.cuda.threads import declare_threads
from cake_tui.ir.lower.tiles import ZERO
from cake_tui.ir.program import WARP, Barrier, Buffer, Declare, Launch, Role, Statement, Wait, WarpRole
from cake_tui.ir.refusal import refuse
from cake_tui.ir.walk import walk_body

REGISTERS = 65536  # of a multiprocessor, of which a block of this kind has all
STEP = 8  # a role's registers are a multiple of it


def bands_of(frame: CudaFrame, launch: Launch) -> dict[str, Band]:
    """Return the threads of each role of a launch."""
    found = {}
    for statement in walk_body(launch.body):
        if isinstance(statement, WarpRole):
            first, last = frame.number(statement.first, statement.name), frame.number(statement.last, statement.name)
            found[statement.name] = Band(statement, first * WARP, (last - first + 1) * WARP)
    return found


def lower_launch(frame: CudaFrame, launch: Launch, buffers: Mapping[str, Buffer]) -> tuple[tuple[str, str], ...]:
    """Lower a launch's body; return constants for the top of the source."""
    bands = bands_of(frame, launch)
    if not any(isinstance(statement, Role) for statement in launch.body):
        declare_phases(frame, launch, launch.body)
        with declare_threads(frame, buffers.values(), "threadIdx.x", launch.body), open_tiles(frame, launch) as inner:
            lower_body(inner, launch.body)
        return ()
    others = [one for one in launch.body if not isinstance(one, Role | Declare | WarpRole) and _acts(one)]
    if others and launch.persistent is not None:
        raise refuse("lowering", launch.name, "statements of all threads beside roles", "roles alone", step="lower")
    constants: list[tuple[str, str]] = []
    run: list[Role] = []
    for statement in (*launch.body, None):
        if isinstance(statement, Role) and statement.name not in {role.name for role in run}:
            run.append(statement)
            continue
        if run and statement is not None and not isinstance(statement, Role) and not _acts(statement):
            continue
        if run:
            constants += _chain(frame, launch, run, bands, buffers)
            run = [statement] if isinstance(statement, Role) else []
        if statement is not None and not isinstance(statement, Role) and _acts(statement):
            declare_phases(frame, launch, (statement,))
            with declare_threads(frame, buffers.values(), "threadIdx.x", (statement,)):
                lower_body(frame, (statement,))
    return tuple(constants)


def _acts(statement: Statement) -> bool:
    """Whether a statement is more than a declaration."""
    return not isinstance(statement, Declare | WarpRole | Barrier)


def _chain(
    frame: CudaFrame, launch: Launch, roles: list[Role], bands: Mapping[str, Band], buffers: Mapping[str, Buffer]
) -> list[tuple[str, str]]:
    """Lower roles that run side by side, in order of their threads."""
    constants: list[tuple[str, str]] = []
    end = 0
    ordered = sorted(roles, key=lambda role: bands[role.name].first)
    for place, group in enumerate(shared_roles(launch, ordered, bands)):
        band = bands[group[0].name]
        count = band.count * len(group)
        tests = [f"threadIdx.x >= {band.first}"] if band.first > end else []
        if band.first + count < frame.team.threads:
            tests.append(f"threadIdx.x < {band.first + count}")
        if place:
            frame.writer.otherwise()
        test = f"if ({' && '.join(tests)})" if tests else ""
        head = test if place == 0 else f"}} else {test}".rstrip()
        end = band.first + count
        inner = frame.child()
        with frame.writer.block(head) if head else frame.writer.scope():
            constants += _role(inner, launch, group, band, buffers)
    return constants


def _role(
    frame: CudaFrame, launch: Launch, group: Sequence[Role], band: Band, buffers: Mapping[str, Buffer]
) -> list[tuple[str, str]]:
    """Lower one role, or several that share their code; `band` is the first one's."""
    (number,) = frame.fresh("group")
    role = merged(group, Name(number))
    counter = f"threadIdx.x - {band.first}" if band.first else "threadIdx.x"
    if len(group) > 1:
        of_all = f"({counter})" if band.first else counter
        frame.writer.line(f"const int {number} = {of_all} / {band.count};")
        frame.declare(number, ZERO, Number(len(group)))
        counter = f"{of_all} % {band.count}"
    _set_registers(frame, band)
    count = {"all": band.count, "one warp": WARP, "one thread": 1}[role.who]
    (name,) = frame.fresh(f"{role.name.upper()}_THREADS")
    frame.define(name, Number(count))
    frame.team = Team(count, Name(name), who=role.who, role=role.name)
    frame.coordinates = {}
    frame.phases = {}
    if role.who == "all":
        _body(frame, launch, role, counter, buffers)
    else:
        test = "==" if role.who == "one thread" else "<"
        last = band.first + (0 if role.who == "one thread" else WARP)
        with frame.writer.block(f"if (threadIdx.x {test} {last})"):
            _body(frame, launch, role, counter, buffers)
    return [(name, str(count))]


def _body(frame: CudaFrame, launch: Launch, role: Role, counter: str, buffers: Mapping[str, Buffer]) -> None:
    declare_phases(frame, launch, role.body)
    own = [
        statement.buffer
        for statement in launch.body
        if isinstance(statement, Declare)
        and statement.buffer.space == "register"
        and statement.buffer.owner == role.name
    ]
    inside = {one.buffer.name for one in walk_body(role.body) if isinstance(one, Declare)}
    mine = [buffer for buffer in buffers.values() if buffer.name in inside or buffer in own]
    with declare_threads(frame, mine, counter, role.body), open_tiles(frame, launch) as inner:
        for buffer in own:
            inner.buffers[buffer.name] = buffer
            declare_registers(inner, buffer)
        lower_body(inner, role.body)


def _set_registers(frame: CudaFrame, band: Band) -> None:
    """Take or give registers, against what the launch gives each thread."""
    asked = band.role.registers
    if asked is None:
        return
    given = REGISTERS // frame.team.threads // STEP * STEP
    which = "down" if asked <= given else "up"
    frame.writer.line(f"set_max_registers_{which}<{asked}>();")


def declare_phases(frame: CudaFrame, launch: Launch, body: Iterable[Statement]) -> None:
    """Declare the parities that a body's waits keep: of a barrier that starts open, the phase before the first."""
    waited = dict.fromkeys(one.barrier for one in walk_body(tuple(body)) if isinstance(one, Wait))
    for barrier in waited:
        if barrier in frame.phases:
            continue
        slots = frame.number(frame.slots[barrier], barrier)
        if slots > MOST_SLOTS:
            raise refuse("lowering", barrier, f"{slots} slots", f"at most {MOST_SLOTS}", step="lower")
        (name,) = frame.fresh(f"{barrier}_phase")
        first = ("1" if slots == 1 else "~0u") if starts_open(launch, barrier) else "0"
        frame.writer.line(f"unsigned {name} = {first};")
        frame.phases[barrier] = name
