"""What the keys do that are about candidates: details, comparison, exact JSON, profile, copying."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from textual.screen import Screen

from cake_tui.tui.clipboard import copy
from cake_tui.tui.pane import Pane
from cake_tui.tui.screens.compare import Compare
from cake_tui.tui.screens.details import Details
from cake_tui.tui.screens.exact import Exact
from cake_tui.tui.screens.whole import Whole
from cake_tui.tui.views import View

if TYPE_CHECKING:
    from cake_tui.tui.app import CakeApp


class CandidateKeys(Screen[None], inherit_bindings=False):
    """A screen on which a candidate is chosen."""

    held: int | None = None  # the first of two to compare

    @property
    def viewer(self) -> CakeApp:
        """The app, by its own type."""
        return cast("CakeApp", self.app)

    def action_details(self) -> None:
        """All on record about the candidate that the focused pane is about, or the pane's lines in full."""
        pane = self.focused
        lines = pane.whole(pane.view) if isinstance(pane, Pane) and pane.view is not None else None
        if isinstance(pane, Pane) and lines is not None:
            self.viewer.push_screen(Whole(f"{pane.title}, whole lines", lines, self.viewer.ascii))
            return
        view = self._chosen()
        if view is not None and view.selected_row is not None:
            self.viewer.push_screen(Details(view, view.selected_row.number))

    def action_profile(self) -> None:
        """Ask for the profiler on a GPU; elsewhere, and where it has been asked, show what is known."""
        view = self._chosen()
        row = None if view is None else view.selected_row
        if view is None or row is None:
            return
        asked = row.profiled or row.number in view.history.wanted_profiles
        if view.replay or view.history.device.target != "cuda" or asked:
            self.viewer.push_screen(Details(view, row.number, section="profile"))
        elif row.time_us is None:
            self.viewer.say(f"#{row.number} has no time: only what was measured is profiled", "warn")
        else:
            self.viewer.send("profile", {"candidate": row.number}, f"profile #{row.number}")

    def action_exact(self) -> None:
        """Exact JSON of the chosen candidate."""
        view = self._chosen()
        if view is not None and view.selected is not None:
            found = view.files.feedback_text(view.selected)
            self.viewer.push_screen(Exact(view.selected, found, self.viewer.ascii))

    def action_compare(self) -> None:
        """Hold the chosen candidate; with one held, put the two side by side (the same one: against the best)."""
        view = self._chosen()
        if view is None or view.selected is None:
            return
        if self.held is None or self.held >= len(view.history.rows):
            self.held = view.selected
            self.viewer.say(f"#{self.held} is held; choose another and press the key again, or here for the best")
            return
        first, second = self.held, view.selected
        if first == second:
            second = view.history.incumbent if view.history.incumbent is not None else first
        self.held = None
        if first == second:
            self.viewer.say(f"#{first} is the best itself: nothing to compare")
        else:
            self.viewer.push_screen(Compare(view, first, second))

    def action_copy(self) -> None:
        """Copy what the focused pane offers, and name the file that holds it."""
        pane = self.focused
        if isinstance(pane, Pane) and pane.view is not None:
            copied = pane.copied(pane.view)
            if copied is None:
                self.viewer.say("nothing to copy here", "warn")
            else:
                self.viewer.say(*copy(self.viewer, copied))

    def _chosen(self) -> View | None:
        """The moment, with the candidate that the focused pane is about as the selected one."""
        view, pane = self.viewer.view(), self.focused
        if isinstance(pane, Pane):
            view = replace(view, selected=pane.opened(view))
        if view.selected is None:
            self.viewer.say("no candidate has ended yet", "warn")
            return None
        return view
