"""Runs the app headless: press keys, let it settle, look at text or picture."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from textual.pilot import Pilot

from cake_tui.tui.app import CakeApp
from cake_tui.tui.panes.best import Best
from cake_tui.tui.screens.inject import Inject
from tests.tui.picture import svg_of, text_of

Script = Callable[[CakeApp, Pilot[int]], Awaitable[None]]


def play(app: CakeApp, script: Script, size: tuple[int, int] = (120, 40)) -> None:
    """Run a script against the app; what the app raises is raised here."""

    async def go() -> None:
        async with app.run_test(size=size) as pilot:
            await settle(app, pilot)
            await script(app, pilot)

    asyncio.run(go())


async def settle(app: CakeApp, pilot: Pilot[int]) -> None:
    """Wait until all is drawn, the highlighted source too."""
    await pilot.pause()
    for pane in app.screen.query(Best):
        pane.settle()
    if isinstance(app.screen, Inject):
        app.screen.settle()
    await pilot.pause()


async def press(app: CakeApp, pilot: Pilot[int], *keys: str) -> None:
    """Press keys one after the other, settling after the last."""
    await pilot.press(*keys)
    await settle(app, pilot)


def text_after(app: CakeApp, keys: Sequence[str] = (), size: tuple[int, int] = (120, 40)) -> str:
    """The screen's text after some keys."""
    seen: list[str] = []

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, *keys)
        seen.append(text_of(app))

    play(app, script, size)
    return seen[0]


def picture_after(app: CakeApp, keys: Sequence[str] = (), size: tuple[int, int] = (120, 40)) -> str:
    """The screen as SVG after some keys."""
    seen: list[str] = []

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, *keys)
        seen.append(svg_of(app))

    play(app, script, size)
    return seen[0]
