"""Where panes go: rows of panes for wide, middle and small terminals, one pane with a tab bar in small ones."""

from __future__ import annotations

from collections.abc import Sequence

from textual.containers import Container
from textual.geometry import Offset, Region, Size, Spacing
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.widget import Widget

from cake_tui.tui.arrangement import Arrangement
from cake_tui.tui.pane import Pane

WIDE = (104, 28)  # columns and rows from which on three rows of panes fit
MIDDLE = (72, 18)

# (share of the height, ((pane, share of the width), ...))
Rows = tuple[tuple[int, tuple[tuple[str, int], ...]], ...]
WIDE_ROWS = ((13, (62, 58)), (13, (62, 58)), (11, (39, 41, 40)))  # (share of the height, shares of the width)
MIDDLE_TOP = (("history", 42), ("actions", 36))
MIDDLE_SHARES = (9, 11)  # below them, whichever pane was chosen last
FIXED = frozenset(name for name, _ in MIDDLE_TOP)


def rows_for(width: int, height: int, chosen: str, slot: str, zoomed: bool, shown: Sequence[str]) -> Rows:
    """The rows of panes for a size; in wide terminals all that are shown, two, two and the rest."""
    one: Rows = ((1, ((chosen, 1),)),)
    if zoomed or width < MIDDLE[0] or height < MIDDLE[1]:
        return one
    if width < WIDE[0] or height < WIDE[1]:
        top = tuple((name, share) for name, share in MIDDLE_TOP if name in shown)
        others = [name for name in shown if name not in FIXED]
        below = slot if slot in others else next(iter(others), "")
        rows: Rows = ((MIDDLE_SHARES[0], top),) if top else ()
        return (*rows, (MIDDLE_SHARES[1], ((below, 1),))) if below else rows
    out: list[tuple[int, tuple[tuple[str, int], ...]]] = []
    left = list(shown)
    for place, (share, parts) in enumerate(WIDE_ROWS, 1):
        count = len(left) if place == len(WIDE_ROWS) else len(parts)
        names, left = left[:count], left[count:]
        if names:
            wide = (*parts, *[40] * (len(names) - len(parts)))
            out.append((share, tuple(zip(names, wide))))
    return tuple(out)


def regions(rows: Rows, width: int, height: int) -> dict[str, Region]:
    """Cells of each pane; one blank column between neighbours."""
    out: dict[str, Region] = {}
    tops = _split(height, [share for share, _ in rows], 0)
    for (y, tall), (_, row) in zip(tops, rows):
        for (x, wide), (name, _) in zip(_split(width, [part for _, part in row], 1), row):
            out[name] = Region(x, y, wide, tall)
    return out


def _split(total: int, shares: Sequence[int], gap: int) -> list[tuple[int, int]]:
    """(start, size) of parts in proportion to their shares, all cells used."""
    room = max(0, total - gap * (len(shares) - 1))
    out: list[tuple[int, int]] = []
    at, used, whole = 0, 0, sum(shares)
    for index, share in enumerate(shares):
        used += share
        end = round(room * used / whole)
        out.append((at + gap * index, end - at))
        at = end
    return out


class _TileLayout(Layout):
    name = "tiles"

    def arrange(self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True) -> ArrangeResult:
        """Place the panes that the parent's size and choice show; others are not on the screen."""
        parent.pre_layout(self)
        assert isinstance(parent, Tiles)
        placed = parent.placed(size.width, size.height)
        return [
            WidgetPlacement(placed[child.pane_name], Offset(0, 0), Spacing(), child)
            for child in children
            if isinstance(child, Pane) and child.pane_name in placed
        ]


class Tiles(Container):
    """Holds all panes and shows those that fit."""

    DEFAULT_CSS = "Tiles { width: 1fr; height: 1fr; }"

    def __init__(self, panes: Sequence[Pane], arrangement: Arrangement) -> None:
        super().__init__(*panes, id="tiles")
        self.panes = list(panes)
        self.arrangement = arrangement
        shown = arrangement.shown
        self.chosen = "history" if "history" in shown else shown[0]
        self.slot = next((name for name in shown if name not in FIXED), self.chosen)
        self.zoomed = False
        self._tiles = _TileLayout()

    @property
    def layout(self) -> Layout:
        """Our own layout, whatever the style sheet says."""
        return self._tiles

    def rows(self, width: int, height: int) -> Rows:
        """What is shown at a size."""
        return rows_for(width, height, self.chosen, self.slot, self.zoomed, self.arrangement.shown)

    def placed(self, width: int, height: int) -> dict[str, Region]:
        """Regions of the panes on screen; regions without cells are left out."""
        found = regions(self.rows(width, height), width, height)
        return {name: region for name, region in found.items() if region.width > 0 and region.height > 0}

    def on_screen(self) -> list[Pane]:
        """Panes that are shown now."""
        placed = self.placed(self.size.width, self.size.height)
        return [pane for pane in self.panes if pane.pane_name in placed]

    def all_fit(self) -> bool:
        """Every pane that is not hidden is on screen: no tab bar needed."""
        return len(self.on_screen()) == len(self.arrangement.shown)

    def choose(self, name: str) -> Pane | None:
        """Bring a pane to the screen and return it."""
        pane = next((pane for pane in self.panes if pane.pane_name == name), None)
        if pane is None:
            return None
        self.arrangement.reveal(name)
        self.chosen = name
        if name not in FIXED:
            self.slot = name
        self.rearrange()
        return pane

    def zoom(self) -> None:
        """One pane over all, and back."""
        self.zoomed = not self.zoomed
        self.rearrange()

    def next_to(self, name: str, by: int) -> str:
        """The pane so many places on, in their order and round."""
        shown = self.arrangement.shown
        return shown[(shown.index(name) + by) % len(shown)] if name in shown else shown[0]

    def hide(self, name: str) -> bool:
        """Take a pane off the screen; another is chosen. False for the last one."""
        after = self.next_to(name, 1)
        if not self.arrangement.hide(name):
            return False
        if self.slot == name:
            self.slot = after
        self.zoomed = False
        self.choose(after)
        return True

    def rearrange(self) -> None:
        """Place the panes anew; Textual forgets a container's arrangement when a child asks for a layout."""
        self.panes[0].refresh(layout=True)
