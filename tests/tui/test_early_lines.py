"""Lines may be put before their widget has a size, as on a busy machine: they show as soon as it has one."""

from __future__ import annotations

import asyncio

from textual.app import App, ComposeResult

from cake_tui.tui.lines import LinesWidget


class Early(App[None]):
    """Puts its line while nothing is laid out, and no other time."""

    def compose(self) -> ComposeResult:
        lines = LinesWidget()
        lines.put([(("put early", ""),)])
        yield lines


def test_lines_put_before_the_layout_show_after_it_and_after_every_change_of_size() -> None:
    async def go() -> list[str]:
        app = Early()
        async with app.run_test(size=(20, 3)) as pilot:
            seen = []
            for size in ((20, 3), (6, 3), (40, 2)):
                await pilot.resize_terminal(*size)
                await pilot.pause()
                seen.append(app.query_one(LinesWidget).render_line(0).text.rstrip())
            return seen

    assert asyncio.run(go()) == ["put early", "put e…", "put early"]
