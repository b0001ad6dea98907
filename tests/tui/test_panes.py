"""What panes show, what keys do, and that outside text is shown literally in every one of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
from textual.binding import Binding
from textual.pilot import Pilot

from cake_tui import figures, registry
from cake_tui.model import event as ev
from cake_tui.model.lowered import Lowered
from cake_tui.model.measure import Clock, Series, Stale
from cake_tui.tui.app import CakeApp, load_panes
from cake_tui.tui.keys import KEYS, here
from cake_tui.tui.pane import Pane
from cake_tui.tui.panes.board import FILTERS
from tests.tui.conftest import app_of
from tests.tui.picture import text_of
from tests.tui.pilot import play, press, settle, text_after
from tests.tui.sample import DEVICE, Sample

PANES = registry.names("tui/panes")
SIZES = ((120, 40), (80, 24), (40, 12), (200, 60))


# -- every pane, found by the registry -----------------------------------------------------------------


@pytest.mark.parametrize("name", PANES)
def test_a_pane_says_what_it_is_and_has_keys_of_its_own(name: str) -> None:
    kind = registry.load("tui/panes", name)
    assert issubclass(kind, Pane)
    assert kind.title
    assert kind.help
    own = [binding.id or "" for binding in _own(name)]
    assert all(name_of.startswith(f"{name}.") for name_of in own), own


@pytest.mark.parametrize("full", [False, True], ids=["empty", "full"])
@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
def test_every_pane_draws_an_empty_and_a_full_view(
    size: tuple[int, int], full: bool, finished_sample: Sample, tmp_path: Path
) -> None:
    app = app_of(finished_sample if full else Sample(tmp_path / "empty"))

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        for pane in load_panes():
            await press(app, pilot, str(pane.number), "z")
            assert f"━ {pane.number} {pane.title} " in text_of(app)
            await press(app, pilot, "z")
            assert f"━ {pane.number} {pane.title} " in text_of(app)

    play(app, script, size)


@pytest.mark.parametrize("replay", [False, True], ids=["live", "replay"])
def test_no_key_is_bound_twice(replay: bool) -> None:
    everywhere = [key.strip() for entry in here(replay) for key in entry.keys.split(",")]
    assert len(set(everywhere)) == len(everywhere)
    assert len({entry.id for entry in KEYS}) == len(KEYS)
    scrolling = [key for binding in Pane.BINDINGS for key in binding.key.split(",")]
    digits = [str(number) for number in range(1, 10)]
    for name in PANES:
        own = [key for binding in _own(name) for key in binding.key.split(",")]
        taken = [*everywhere, *scrolling, *digits, *own]
        assert len(set(taken)) == len(taken), (name, sorted(key for key in taken if taken.count(key) > 1))


def _own(name: str) -> list[Binding]:
    return list(registry.load("tui/panes", name).__dict__.get("BINDINGS", ()))


# -- headline, best, history, board, feedback ----------------------------------------------------------


def test_the_headline_answers_the_first_questions(finished_sample: Sample) -> None:
    text = text_after(app_of(finished_sample))
    top = text.splitlines()[:3]
    assert "RUNNING" in top[0]
    assert "of 600 candidates" in top[0]
    assert "of 24 h" in top[0]
    assert "last event" in top[0]
    assert "since a win" in top[0]
    assert f"best #{finished_sample.incumbent} {finished_sample.best_us / 1000:.3f} ms" in top[1]
    # 180 ms against the best; numpy's 1.75 ms against the best
    assert f"{180_000 / finished_sample.best_us:.0f}× baseline" in top[1]
    assert f"{1_750 / finished_sample.best_us:.2f}× numpy" in top[1]
    assert f"{2 * 512**3 / finished_sample.best_us * 1e-3:.0f} GFLOP/s" in top[1]


def test_eighty_columns_show_best_status_and_actions(finished_sample: Sample) -> None:
    text = text_after(app_of(finished_sample), size=(80, 24))
    for words in ("RUNNING", f"best #{finished_sample.incumbent}", "actions", "weight", "best kernel"):
        assert words in text


def test_forty_columns_show_one_pane_and_a_tab_bar(finished_sample: Sample) -> None:
    text = text_after(app_of(finished_sample), ["4"], size=(40, 12))
    assert "RUNNING" in text
    assert "4 board" in text
    assert "accepted" not in text or "●" in text
    assert " 1  2  3 " in text


def test_the_best_pane_shows_the_file_in_best_with_the_hash_on_record(finished_sample: Sample) -> None:
    app = app_of(finished_sample)
    text = text_after(app, ["1", "z"])
    assert figures.digest(app.bridge.fold.history.rows[finished_sample.incumbent].source_sha256 or "") in text
    assert "typedef float v16 __attribute__((vector_size(64), aligned(4)));" in text


@pytest.mark.parametrize("keys", [("1", "z"), ("4", "g", "enter", "tab", "tab", "tab", "tab", "tab", "tab")], ids=str)
def test_its_hash_is_that_of_export_verify_and_show(keys: tuple[str, ...], sample: Sample) -> None:
    """They name the lowered value: source, options, architecture and launches."""
    source = (sample.folder / "best" / "kernel.c").read_text(encoding="utf-8")
    lowered = Lowered("c", "x86-64-v4", source, ("-O3",), ())
    for folder in (sample.folder / "best", sample.folder / "candidates" / str(sample.incumbent)):
        (folder / "lowered.json").write_bytes(msgspec.json.encode(lowered))
    assert figures.digest(lowered.sha256) in text_after(app_of(sample), keys, (120, 120))
    for folder in (sample.folder / "best", sample.folder / "candidates" / str(sample.incumbent)):
        (folder / "kernel.c").write_text(source + "\n/* by hand */\n", encoding="utf-8")
    text = text_after(app_of(sample), keys, (120, 120))
    assert "changed since it was measured" in text
    assert figures.digest(lowered.sha256) not in text


def test_the_best_pane_shows_the_diff_and_the_program(finished_sample: Sample) -> None:
    diff = text_after(app_of(finished_sample), ["1", "z", "d"])
    assert f"+++ #{finished_sample.incumbent}" in diff
    program = text_after(app_of(finished_sample), ["1", "z", "r"])
    assert "program matmul_bias_relu ir 1 target c" in program


def test_a_long_source_is_shown_plain(sample: Sample) -> None:
    from cake_tui.tui.highlight import coloured

    text = "int x;\n" * 6000
    assert {tone for line in coloured(text, "c") for _, tone in line} == {""}
    (sample.folder / "best" / "kernel.c").write_text(text)
    assert "6000 int x;" in text_after(app_of(sample), ["1", "z", "G"])


def test_highlighting_changes_no_character(finished_sample: Sample) -> None:
    from cake_tui.tui.highlight import coloured, plain

    text = finished_sample.kernel(
        3, finished_sample.seq and __import__("cake_tui.model.schedule", fromlist=["x"]).Schedule("naive")
    )
    joined = ["".join(piece for piece, _ in line) for line in coloured(text, "c")]
    assert joined == ["".join(piece for piece, _ in line) for line in plain(text)]
    assert len({tone for line in coloured(text, "c") for _, tone in line}) >= 5


def test_the_board_chooses_what_the_feedback_shows(finished_sample: Sample) -> None:
    app = app_of(finished_sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "4", "down", "down")
        chosen = app.chosen
        assert chosen is not None
        assert f"#{chosen} · chosen" in text_of(app)
        await press(app, pilot, "escape")
        assert app.chosen is None
        assert "· latest" in text_of(app)

    play(app, script)


def test_selection_and_place_survive_new_candidates(sample: Sample) -> None:
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "4", *["down"] * 6)
        chosen = app.chosen
        sample.run(8)
        app.tick()
        await settle(app, pilot)
        assert app.chosen == chosen
        assert f"#{chosen} · chosen" in text_of(app)

    play(app, script)


def test_the_board_can_be_ordered_and_filtered(finished_sample: Sample) -> None:
    newest = text_after(app_of(finished_sample), ["4", "z", "o"])
    assert "newest" in newest
    failed = text_after(app_of(finished_sample), ["4", "z", *["f"] * FILTERS.index("failed")])
    assert "only failed" in failed
    assert "accepted" not in failed.split("only failed")[1]


def test_the_exact_json_is_shown_as_it_is(finished_sample: Sample) -> None:
    text = text_after(app_of(finished_sample), ["J"])
    number = len(json.loads((finished_sample.folder / "candidates" / "150" / "feedback.json").read_text()))
    assert number > 5
    assert '"iteration": 150,' in text
    assert '"compile_status": "ok",' in text


def test_without_a_feedback_file_the_journal_speaks(sample: Sample) -> None:
    for path in (sample.folder / "candidates").glob("*/feedback.json"):
        path.write_text("{ torn")
    assert "from the journal" in text_after(app_of(sample), ["2", "z"])


def test_history_marks_people_lines_and_failures(finished_sample: Sample) -> None:
    text = text_after(app_of(finished_sample), ["3", "z"])
    for words in ("▲ anna: inject", "numpy", "goal 1.1 peer", "baseline", "failed", "GFLOP/s · linear", "●", "✗"):
        assert words in text
    assert "log" in text_after(app_of(finished_sample), ["3", "z", "l"])
    assert "ms┤" in text_after(app_of(finished_sample), ["3", "z", "t"])


def test_clocks_say_since_when_a_reading_is_missing_and_what_a_code_did(finished_sample: Sample) -> None:
    text = text_after(app_of(finished_sample), ["5", "z"])
    assert "n/a since 09:" in text
    assert "no sensor in this machine" in text
    assert "S9 ×" in text
    assert "series dropped and run again" in text
    assert "add/ns" in text


def test_the_log_can_be_narrowed_and_scrolled(finished_sample: Sample) -> None:
    people = text_after(app_of(finished_sample), ["7", "z", "f", "f", "f"])
    assert "inject by anna: apply_register_block(8, 2)" in people
    assert "measured" not in people
    assert "back" in text_after(app_of(finished_sample), ["7", "z", "up", "pageup"])


def test_a_gpus_readings_stand_against_their_limits_with_reasons_in_words(tmp_path: Path) -> None:
    sample = Sample(tmp_path / "gpu", device=msgspec.structs.replace(DEVICE, kind="cuda", target="cuda"))
    sample.run(4)
    sample.beat(
        90, sm_mhz=1188.0, sm_max_mhz=1980.0, memory_mhz=2619.0, power_w=651.2, power_limit_w=700.0,
        reasons=["power cap"], foreign_processes=2, foreign_bytes=3 * 2**30, health=["row remap pending"],
    )  # fmt: skip
    text = text_after(app_of(sample), ["5", "z"])
    for words in (
        "1,188 MHz 60 %", "2,619 MHz 100 %", "651 of 700 W", "throttle power cap", "row remap pending",
        "2 foreign processes on the device, 3.0 GiB held", "n/a since 09:", "no sensor in this machine", "▅",
    ):  # fmt: skip
        assert words in re.sub(r"(throttle) +", r"\1 ", text), words


def test_the_rate_around_the_last_series_stands_in_for_one_that_the_heartbeat_cannot_read(sample: Sample) -> None:
    clock = Clock(mono=1.0, rate=2.5)
    for rate in (2.5, 2.6, 2.0):
        after = msgspec.structs.replace(clock, rate=rate)
        series = (Series(pairs=(), before=clock, after=after),)
        sample.put(ev.Coarse(candidate=1, against=0, seconds=0.2, avg_us=1.0, runs_us=(1.0,), gain=0.0, series=series))
    sample.put(ev.GuardFired(candidate=1, stale=Stale("S4", "s", "r", 2.6, 2.5)))
    sample.beat(1, rate=None)
    assert "2 add/ns 80 %" in text_after(app_of(sample), ["5", "z"])  # 2.0 of the 2.5 that is normal now
