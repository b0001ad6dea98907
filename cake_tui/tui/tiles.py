"""Where panes go: rows of panes for wide, middle and small terminals, one pane with a tab bar in small ones."""

from __future__ import annotations

from collections.abc import Sequence

from textual.containers import Container
from textual.geometry import Offset, Region, Size, Spacing
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.widget import Widget

from cake_tui.tui.pane import Pane

WIDE = (104, 28)  # columns and rows from which on three rows of panes fit
MIDDLE = (72, 18)
SLOT = ""  # in the middle size, whichever pane was chosen last

# (share of the height, ((pane, share of the width), ...))
Rows = tuple[tuple[int, tuple[tuple[str, int], ...]], ...]
WIDE_ROWS: Rows = (
    (13, (("history", 62), ("best", 58))),
    (13, (("board", 62), ("feedback", 58))),
    (11, (("clocks", 39), ("actions", 41), ("log", 40))),
)
MIDDLE_ROWS: Rows = ((9, (("history", 42), ("actions", 36))), (11, ((SLOT, 1),)))

FIXED = frozenset(name for _, row in MIDDLE_ROWS for name, _ in row if name)


def rows_for(width: int, height: int, chosen: str, slot: str, zoomed: bool, known: Sequence[str]) -> Rows:
    """The rows of panes for a size; panes that are not placed there go to the last row (added ones)."""
    one: Rows = ((1, ((chosen, 1),)),)
    if zoomed or width < MIDDLE[0] or height < MIDDLE[1]:
        return one
    if width < WIDE[0] or height < WIDE[1]:
        return tuple((share, tuple((name or slot, part) for name, part in row)) for share, row in MIDDLE_ROWS)
    placed = {name for _, row in WIDE_ROWS for name, _ in row}
    added = [(name, 40) for name in known if name not in placed]
    return (*WIDE_ROWS[:-1], (WIDE_ROWS[-1][0], (*WIDE_ROWS[-1][1], *added)))


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

    def __init__(self, panes: Sequence[Pane]) -> None:
        super().__init__(*panes, id="tiles")
        self.panes = list(panes)
        self.chosen = next((p.pane_name for p in panes if p.pane_name == "history"), panes[0].pane_name)
        self.slot = "best" if any(p.pane_name == "best" for p in panes) else panes[0].pane_name
        self.zoomed = False
        self._tiles = _TileLayout()

    @property
    def layout(self) -> Layout:
        """Our own layout, whatever the style sheet says."""
        return self._tiles

    def rows(self, width: int, height: int) -> Rows:
        """What is shown at a size."""
        known = [pane.pane_name for pane in self.panes]
        return rows_for(width, height, self.chosen, self.slot, self.zoomed, known)

    def placed(self, width: int, height: int) -> dict[str, Region]:
        """Regions of the panes on screen; regions without cells are left out."""
        found = regions(self.rows(width, height), width, height)
        return {name: region for name, region in found.items() if region.width > 0 and region.height > 0}

    def on_screen(self) -> list[Pane]:
        """Panes that are shown now."""
        placed = self.placed(self.size.width, self.size.height)
        return [pane for pane in self.panes if pane.pane_name in placed]

    def all_fit(self) -> bool:
        """Every pane is on screen: no tab bar needed."""
        return len(self.on_screen()) == len(self.panes)

    def choose(self, name: str) -> Pane | None:
        """Bring a pane to the screen and return it."""
        pane = next((pane for pane in self.panes if pane.pane_name == name), None)
        if pane is None:
            return None
        self.chosen = name
        if name not in FIXED:
            self.slot = name
        self.rearrange()
        return pane

    def zoom(self) -> None:
        """One pane over all, and back."""
        self.zoomed = not self.zoomed
        self.rearrange()

    def rearrange(self) -> None:
        """Place the panes anew; Textual forgets a container's arrangement when a child asks for a layout."""
        self.panes[0].refresh(layout=True)
