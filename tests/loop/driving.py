"""Drives the loop as an engine does, in memory: stamp, encode, decode, fold; the evaluator is a real process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from cake_tui import kernels, loop, registry
from cake_tui.agents import Agent
from cake_tui.backends.simulated.options import parse_uuid
from cake_tui.config import Settings
from cake_tui.ir.cost import Correction
from cake_tui.menu import LiveMenu
from cake_tui.model import event as ev
from cake_tui.model.history import History
from cake_tui.steps.context import Context
from cake_tui.steps.noise import Guard

ROOT = Path(__file__).parents[2]


class Texts:
    """A folder in memory: what the loop wrote, by candidate and name."""

    def __init__(self) -> None:
        self.files: dict[tuple[int, str], str] = {}
        self.best: tuple[int, Mapping[str, str]] | None = None

    def write(self, candidate: int, name: str, text: str) -> None:
        self.files[candidate, name] = text

    def publish(self, candidate: int, files: Mapping[str, str]) -> None:
        self.best = (candidate, dict(files))


class Session:
    """A session in memory that can be left in the middle and gone on with."""

    def __init__(self, store: Path, surface: str = "ridge,noise=0,drift=0,failures=0", **settings: Any) -> None:
        self.store = store
        self.history = History()
        self.events: list[ev.Event] = []
        self.texts = Texts()
        self.clock = itertools.count()
        self.device = registry.load("backends", "simulated").devices()[0]
        self.device = msgspec.structs.replace(self.device, uuid=f"simulated:{surface}")
        assert parse_uuid(self.device.uuid)
        problem = kernels.load("matmul_bias_relu", target="c")
        problem = msgspec.structs.replace(problem, peers=())
        self.menu = LiveMenu(ROOT / "actions.toml", problem, self.device)
        resolved = Settings().changed(**settings)
        self.record(
            ev.SessionCreated(
                name="s", problem=problem, device=self.device, backend="simulated", agent="test",
                settings=resolved.flat(), versions={},
            )
        )  # fmt: skip
        self.record(ev.EngineStarted(pid=1, host="here"))

    def record(self, event: ev.Event) -> ev.Event:
        number = len(self.events) + 1
        event = msgspec.structs.replace(event, seq=number, mono=float(next(self.clock)) * 1e-3, boot="boot")
        event = msgspec.json.decode(msgspec.json.encode(event), type=ev.AnyEvent)
        self.events.append(event)
        self.history.apply(event)
        return event

    @contextmanager
    def context(self, agent: Agent, wait: Callable[[], None] = lambda: None) -> Iterator[Context]:
        executor = registry.load("executors", "local")("simulated", self.store, self.device)
        try:
            yield Context(
                history=self.history, folder=self.texts, menu=self.menu, agent=agent,
                executor=executor, correction=Correction(), guard=Guard(), wait=wait,
            )  # fmt: skip
        finally:
            executor.close()

    def run(self, agent: Agent, until: Callable[[ev.Event], bool] = lambda event: False) -> str | None:
        """Run to the end, or leave after the first event for which `until` holds; return why it was done."""
        with self.context(agent) as ctx:
            story = loop.run(ctx)
            while True:
                try:
                    event = self.record(next(story))
                except StopIteration as done:
                    return str(done.value)
                if until(event):
                    story.close()
                    return None

    def of(self, kind: type[ev.Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]
