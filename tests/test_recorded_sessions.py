"""The recorded sessions: they fold anywhere, say who chose what won and why, and hold the figures the README gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cake_tui import figures
from cake_tui.cli import main
from cake_tui.ir.text import parse
from cake_tui.model.event import Event
from cake_tui.model.history import History
from cake_tui.store.reading import JournalReader

ROOT = Path(__file__).parents[1]
RECORDED = sorted(path.parent for path in (ROOT / "sessions").glob("example-*/journal.jsonl"))
SAYS = {
    "finding": r"suggests \w+",
    "weight": r"weight \d",
    "probe": r"probe expects [+-]\d",
    "person": r".",
    "random": r"random setting of \w+",
    "start": r"first schedule",
}
PATHS = re.compile(r"(?<![\w.$(])/(?:home|root|tmp|opt|usr|work|var|mnt)/")


def events_of(session: Path) -> list[Event]:
    return list(JournalReader(session / "journal.jsonl").read())


def folded(session: Path) -> History:
    history = History()
    for event in events_of(session):
        history.apply(event)
    return history


@pytest.mark.parametrize("session", RECORDED, ids=lambda path: path.name)
def test_every_candidate_that_won_says_who_chose_it_and_why(session: Path) -> None:
    history = folded(session)
    won = [row for row in history.rows if row.verdict == "accepted"]
    assert won
    for row in won:
        assert re.search(SAYS[row.proposal.chosen_by], row.proposal.reason), row.proposal.reason
    lineage = history.lineage(history.incumbent or 0)
    assert lineage[-1] == 0
    assert {row.number for row in won} >= {history.incumbent}


@pytest.mark.parametrize("session", RECORDED, ids=lambda path: path.name)
def test_it_is_whole_and_names_no_machine(session: Path) -> None:
    history = folded(session)
    assert history.state == "done"
    assert [row.number for row in history.rows] == list(range(len(history.rows)))
    (kernel,) = (session / "best").glob("kernel.*")
    assert kernel.suffix == {"c": ".c", "cuda": ".cu"}[history.device.target]
    best = session / "candidates" / str(history.incumbent)
    if history.session is not None and history.session.agent != "random":  # a sample: its files are of no use
        assert (best / kernel.name).read_bytes() == kernel.read_bytes()
        assert parse((best / "program.cake").read_text(encoding="utf-8")).launches
    for file in session.rglob("*"):
        if file.is_file():
            assert not PATHS.search(file.read_text(encoding="utf-8")), file


@pytest.mark.parametrize("session", RECORDED, ids=lambda path: path.name)
def test_it_is_shown_without_its_device(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history = folded(session)
    assert main(["show", session.name, "--sessions", str(session.parent)]) == 0
    shown = capsys.readouterr().out
    assert f"#{history.incumbent}" in shown or f"candidate {history.incumbent}" in shown
    assert main(["status", session.name, "--sessions", str(session.parent)]) == 0
    assert figures.time(history.incumbent_us) in capsys.readouterr().out


@pytest.mark.parametrize("size", ["1024", "4096"])
def test_the_readme_says_what_the_gpu_sessions_hold(size: str) -> None:
    history = folded(ROOT / "sessions" / f"example-h200-{size}")
    row = next(line for line in README if line.startswith(f"| `example-h200-{size}`"))
    peers = {name: peer.ratio for name, peer in history.peers.items()}
    baseline = (history.rows[0].time_us or 0.0) / (history.incumbent_us or 1.0)
    stated = [float(number) for number in re.findall(r"([\d.]+) ×", row)]
    assert history.effective == 300
    assert stated == pytest.approx([baseline, peers["cublas"], peers["torch"]], rel=0.005)
    assert peers["cublas"] > (1.1 if size == "1024" else 0.9)
    assert baseline > 60


README = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
