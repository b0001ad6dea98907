"""How candidates end, in words: one word each and what it means, the same on the screen, in lines and in `show`."""

from __future__ import annotations

import math
from typing import NamedTuple

from cake_tui.model.history import History
from cake_tui.model.row import Row

NEAR = 64  # numbers of one round lie within so many


class Ending(NamedTuple):
    """A word for the board, and what it tells somebody who meets it for the first time."""

    word: str
    meaning: str


# By `Row.ended_as`. The record's names are the design's; these are for people.
ENDINGS: dict[str, Ending] = {
    "accepted": Ending("accepted", "faster than the best by more than the threshold, confirmed by fresh pairs"),
    "slower": Ending("slower", "slower than the best it was timed beside"),
    "no_gain": Ending("no gain", "as fast as the best or nearly: no gain above the threshold was found"),
    "undecided": Ending("undecided", "after all the pairs allowed it may be faster or not: not accepted"),
    "noisy": Ending("noisy", "its pairs spread too far to tell anything; it may be tried again"),
    "coarse_only": Ending("coarse only", "three pairs only: others of its round did better and went to the gate"),
    "Rejected": Ending("rejected", "a law or an edit forbids it; no compiler was asked"),
    "Screened": Ending("screened", "the cost model expects others of its round to be faster; it was not built"),
    "Repeated": Ending("repeated", "the same source was evaluated before: answered from the record"),
    "BuildFailed": Ending("build failed", "the compiler refused it"),
    "LaunchFailed": Ending("launch failed", "it could not be launched"),
    "Crashed": Ending("crashed", "it took its evaluator down"),
    "TimedOut": Ending("timed out", "it was ended at its time limit"),
    "WrongAnswer": Ending("wrong answer", "it disagrees with the float64 reference"),
    "Interrupted": Ending("interrupted", "the run was stopped in the middle of it"),
    "baseline": Ending("baseline", "candidate 0, which everything is held against"),
    "in flight": Ending("in flight", "it has not ended yet"),
}


def word_of(name: str) -> str:
    """Return the word of an ending; names of newer versions stand for themselves."""
    return ENDINGS[name].word if name in ENDINGS else name


def meaning_of(history: History, row: Row) -> str:
    """Say in one sentence what was found about a candidate; `reason_of` adds the figures."""
    name = row.ended_as
    against = f"#{row.against}" if row.against is not None else "the best"
    needed = f"{_setting(history, 'accept_pct', 0.5):g} %"
    match name:
        case "accepted":
            return f"faster than {against} by more than {needed}, confirmed by fresh pairs"
        case "slower":
            pairs = "in every one of its first pairs with it" if row.step == "measure" else "beyond doubt"
            return f"slower than {against}, the best at that time, {pairs}"
        case "no_gain":
            return f"no gain above {needed} over {against} was found: as fast or nearly, so {against} stays"
        case "undecided":
            return f"it may be more than {needed} faster than {against} or not: undecided is not accepted"
        case "Screened":
            return _screened(history, row)
        case "Repeated" if row.repeats is not None and 0 <= row.repeats < len(history.rows):
            before = word_of(history.rows[row.repeats].ended_as)
            return f"the same source as #{row.repeats} ({before}): answered from the record"
    return ENDINGS[name].meaning if name in ENDINGS else ""


def reason_of(row: Row) -> str:
    """Return what the record gives as the reason, where `meaning_of` has not said it all."""
    told = row.outcome in ("Screened", "Repeated") or (row.verdict == "slower" and row.step == "measure")
    return "" if told else row.reason


def _screened(history: History, row: Row) -> str:
    """What the cost model predicts, and what it was held against: the slowest foretold that went on in its round."""
    mates = [one for one in _round(history, row) if one.predicted_us is not None and one.outcome != "Screened"]
    passed = [one for one in mates if not one.audit]
    share = _setting(history, "audit", 0.1)
    drawn = f"; {100 * share:g} % of such are run all the same" if share else ""
    if row.predicted_us is None:
        return f"the cost model expects others of its round to be faster: not built{drawn}"
    last = max(passed, key=lambda one: one.predicted_us or 0.0, default=None)
    if last is None or not last.predicted_us or last.predicted_us >= row.predicted_us:
        held = "others of its round being faster or the only ones of their structure"
    else:
        more = row.predicted_us / last.predicted_us
        held = f"{_times(more)} the slowest prediction that went on (#{last.number}, {_us(last.predicted_us)})"
    audits = ", ".join(f"#{one.number}" for one in mates if one.audit)
    drawn += f" (in this round {audits})" if audits and drawn else ""
    return f"predicted {_us(row.predicted_us)} by the cost model, {held}: not built{drawn}"


def _round(history: History, row: Row) -> list[Row]:
    """The other candidates of its round, which have numbers near to its own."""
    near = history.rows[max(0, row.number - NEAR) : row.number + NEAR]
    return [one for one in near if one.round == row.round and one.number != row.number]


def _setting(history: History, name: str, default: float) -> float:
    value = history.settings.get(name, default)
    return float(value) if isinstance(value, int | float) else default


def _us(value: float) -> str:
    return f"{value:.4g} us" if value < 1e3 else f"{value / 1e3:.4g} ms"


def _times(ratio: float) -> str:
    return f"{ratio:.2f} times" if math.isfinite(ratio) else "far above"
