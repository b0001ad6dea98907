"""The only place that composes: kernel, device, menu, agent, executor and store become a session that runs."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cake_tui import __version__, loop, registry
from cake_tui.cli._device import Chosen, monitor_of
from cake_tui.cli._origin import Origin
from cake_tui.config import Settings, user_name
from cake_tui.engine.desk import Desk
from cake_tui.engine.drive import Engine, Loop
from cake_tui.engine.opening import reopen
from cake_tui.engine.process import Announce, Started
from cake_tui.errors import ENVIRONMENT, USAGE, UserError
from cake_tui.ir.cost import Correction
from cake_tui.menu import LiveMenu
from cake_tui.model import event as ev
from cake_tui.model.device import Device
from cake_tui.model.history import History
from cake_tui.model.problem import Problem
from cake_tui.steps import compare, inspect, keep
from cake_tui.steps.budget import parse_goal
from cake_tui.steps.context import Context
from cake_tui.steps.noise import Guard
from cake_tui.store import session as sessions
from cake_tui.store.clock import Clocks
from cake_tui.store.files import refuse_without_space
from cake_tui.store.lock import network_file_system, take_device
from cake_tui.store.reading import JournalReader
from cake_tui.store.snapshot import fold_new

GPU_PACKAGES = ("cupy-cuda13x", "cupy-cuda12x", "torch")


@dataclass(frozen=True)
class Order:
    """A new session as the command line asks for it, checked, before anything is made."""

    name: str
    folder: Path  # of all sessions
    chosen: Chosen
    problem: Problem
    agent: str
    settings: Settings
    goal: str | None
    origin: Origin | None


def start(order: Order, announce: Announce, *, foreground: bool) -> int:
    """Make the session, say that it runs, and run it to its end; returns the exit code.

    Raises UserError before anything is made: a compiler that is missing, a device that is in use.
    """
    device = order.chosen.device
    make_agent(order.agent)
    if order.goal is not None:
        parse_goal(order.goal, order.problem.peers)
    menu = LiveMenu(None, order.problem, device)
    compiler = order.chosen.backend.probe(device)
    who = user_name()
    sessions.refuse_existing(order.folder / order.name)
    refuse_without_space(order.folder)
    held = take_device(device.uuid, order.name, who)
    device, unmeasured = _measured(order.chosen)
    created = ev.SessionCreated(
        name=order.name,
        problem=order.problem,
        device=device,
        backend=order.chosen.name,
        agent=order.agent,
        settings=order.settings.flat(),
        versions=_versions(compiler.version, device.kind),
        goal=order.goal,
        started_from=order.origin.label if order.origin is not None else None,
    )
    session = sessions.create(order.folder, created, Clocks(), who=who)
    try:
        if order.origin is not None:
            order.origin.keep(session.path)
        history = History()
        reader = JournalReader(session.journal_path)
        fold_new(history, reader)
        engine = Engine(session, history, lines=reader.line, monitor=monitor_of(device), foreground=foreground)
        fallen_back = (order.chosen.notice,) if order.chosen.notice else ()
        notices = (*unmeasured, *_warnings(session.path))
        engine.begin(Desk(menu, session.write_settings), notices=notices, who=who)
        for text in fallen_back:  # a choice, not a fault: the log tells of it
            engine.record(ev.Noticed(level="info", text=text))
        engine.record(ev.Probed(compiler=" ".join(compiler.command), version=compiler.version))
    except BaseException:  # nothing ran in it yet
        shutil.rmtree(session.path, ignore_errors=True)
        raise
    opened = _Opened(announce, Started(session=str(session.path), notices=fallen_back))
    try:
        code = engine.drive(_story(session, engine, history, menu, order.origin, opened))
        if opened.refused(history, code):
            shutil.rmtree(session.path, ignore_errors=True)
        return opened.ended(history, code)
    finally:
        session.lock.release()
        if held is not None:
            held.release()


def go_on(path: Path, values: dict[str, Any], announce: Announce, *, foreground: bool, **replaced: str | None) -> int:
    """Go on with a session that was stopped, crashed or is done; returns the exit code.

    `values` are settings, `replaced` the agent, goal or seed where the command line gives one. Raises
    UserError (BUSY) where its engine runs, with not a byte added to its record.
    """
    who = user_name()
    refuse_without_space(path)
    session = sessions.open_locked(path, who=who)
    origin = Origin.kept(path)
    left = reopen(path, values)
    history = left.history
    given = {name: value for name, value in replaced.items() if value is not None}
    changes = (*left.changes, *_replacements(history, given))
    backend = registry.load("backends", history.session.backend if history.session else "")
    _same_device(backend, history.device, session.name)
    make_agent(given.get("agent") or (history.session.agent if history.session else ""))
    if goal := given.get("goal"):
        parse_goal(goal, history.problem.peers)
    menu = LiveMenu(None, history.problem, history.device)
    held = take_device(history.device.uuid, session.name, who)
    engine = Engine(session, history, lines=left.lines, monitor=monitor_of(history.device), foreground=foreground)
    notices = (*left.notices, *_warnings(path))
    engine.begin(Desk(menu, session.write_settings), changes=changes, settings=left.settings, notices=notices, who=who)
    told = (*notices, *(f"{name}: {old} → {new}" for name, old, new in changes))
    opened = _Opened(announce, Started(session=str(path), notices=told))
    try:
        return opened.ended(history, engine.drive(_story(session, engine, history, menu, origin, opened)))
    finally:
        session.lock.release()
        if held is not None:
            held.release()


class _Opened:
    """Tells whoever started the engine that it runs: once the check has proved that it tells right from wrong."""

    def __init__(self, announce: Announce, started: Started) -> None:
        self._announce, self._started = announce, started
        self._told = False

    def tell(self) -> None:
        """Tell it, once."""
        if not self._told:
            self._told = True
            self._announce(self._started)

    def refused(self, history: History, code: int) -> bool:
        """Say whether the run ended before it began, for a reason that the user can mend."""
        return not self._told and history.state == "failed" and code in (USAGE, ENVIRONMENT)

    def ended(self, history: History, code: int) -> int:
        """Return the exit code; raises UserError where the start was refused."""
        if self.refused(history, code):
            raise UserError(history.state_reason, code)
        self.tell()
        return code


def _story(
    session: sessions.Session,
    engine: Engine,
    history: History,
    menu: LiveMenu,
    origin: Origin | None,
    opened: _Opened,
) -> Loop:
    """Make what the loop works with, inside the engine, and run the loop."""
    created = history.session
    if created is None:
        raise ValueError("no session")
    executor = registry.load("executors", "local")(created.backend, session.build_store, history.device)
    executor.wait_for_room(engine.wait_for_space)
    try:
        ctx = Context(
            history=history,
            folder=session,
            menu=menu,
            agent=make_agent(created.agent),
            executor=executor,
            correction=Correction(),
            guard=Guard(
                Settings.from_flat(history.settings).running.guard_refusals,
                monitor_of(history.device),
                say=engine.tell,
            ),
            wait=engine.wait,
            goal=parse_goal(created.goal, history.problem.peers) if created.goal else None,
            texts=origin.texts if origin is not None else {},
            start=origin.schedule if origin is not None else None,
        )
        engine.when_paused = lambda: inspect.idle(ctx)
        if session.disk is not None:
            session.disk.in_use = lambda: _hashes(ctx)
        if history.incumbent is not None and session.published() != history.incumbent:
            # The last engine died between accepting a candidate and publishing it.
            compare.subject(ctx, history.incumbent)
            keep.best(ctx, history.incumbent)
        if history.self_tested:
            opened.tell()
            return (yield from loop.run(ctx))
        with closing(loop.run(ctx)) as story:
            yield next(story)  # the self-test's end
            opened.tell()
            return (yield from story)
    finally:
        executor.close()


def _measured(chosen: Chosen) -> tuple[Device, tuple[str, ...]]:
    """Return the device with its peak rates; where they cannot be measured they stay unknown, with a notice."""
    try:
        return chosen.backend.measured(chosen.device), ()
    except UserError as error:
        return chosen.device, (f"{error}; feedback does without shares of the machine's peak",)


def make_agent(text: str) -> Any:
    """Make an agent from ``NAME`` or ``NAME:ARGUMENT``; raises UserError."""
    name, _, argument = text.partition(":")
    return registry.load("agents", name)({"argument": argument} if argument else {})


def _hashes(ctx: Context) -> frozenset[str]:
    names = [name for one in ctx.subjects.values() for name in (one.full.binary_sha256, one.smoke.binary_sha256)]
    flying = [name for row in ctx.history.in_flight() for name in (row.full_sha256, row.smoke_sha256) if name]
    return frozenset(names + flying)


def _replacements(history: History, given: dict[str, str]) -> Sequence[tuple[str, str, str]]:
    created = history.session
    if created is None:
        return ()
    now = {"agent": created.agent, "goal": created.goal or "none", "seed": str(created.problem.seed)}
    return [(name, now[name], value) for name, value in given.items() if now[name] != value]


def _same_device(backend: Any, device: Device, name: str) -> None:
    made = getattr(backend, "device", None)
    if made is not None:
        return
    here = [one.uuid for one in backend.devices()]
    if device.uuid not in here:
        raise UserError(
            f'session "{name}" was measured on {device.name} ({device.uuid}), which is not here; '
            f"times do not compare: start anew with cake-tui run --from {name}",
            ENVIRONMENT,
        )


def _versions(compiler: str, kind: str) -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {"cake_tui": __version__, "python": platform.python_version(), "compiler": compiler}
    for package in ("numpy", "textual", "msgspec", *(GPU_PACKAGES if kind == "cuda" else ())):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _warnings(path: Path) -> tuple[str, ...]:
    kind = network_file_system(path)
    if kind is None:
        return ()
    late = "viewers see changes late, and the lock works only where flock does"
    return (f"{path} is on a network file system ({kind}): {late}; a local folder (--sessions) is better",)
