"""A05: what a compiler, an agent or a person writes is shown as it is, live and attached, and kept byte for byte."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from cake_tui.model import event as ev
from tests.cases.doubling import make_kernel, make_script, settings
from tests.cases.shell import Shell, ended, events, log_of
from tests.engine.scripted import folded, until
from tests.tui.pty_terminal import PtyTerminal

ERROR = "mm<[/BM]> [/dim] [/"
REASON = "a[i][/*pad*/] [/ [@click=app.exit()]x[/] \\["
HOSTILE = [
    "[/x]",
    "[red]r",
    "a[/bold]",
    "\x1b[31mred",
    "nul\x00",
    "cr\rlf\nx",
    "\x9b2J",
    "x" * 490,
    "\u202eabc",
    "é日本🙂",
]


@pytest.mark.cc
def test_compiler_and_agent_text_live_and_attached(shell: Shell) -> None:
    make_kernel(shell, f"#if MODE == 1\n#error {ERROR}\n#endif\n")
    agent = make_script(
        shell, ("set_MODE(1)", REASON, 1.0), ("set_MODE(2)", REASON, 0.0), *[("set_MODE(3)", REASON, 2.0)] * 20
    )
    shell.apart("run", "two", "--backend", "cpu", "--name", "a", "--agent", agent, *settings("exhausted_rounds=40"))
    session = shell.sessions / "a"
    with PtyTerminal("attach", "a", "--sessions", str(shell.sessions), columns=200, rows=50) as live:
        live.wait_for("RUNNING")
        live.wait_for(ERROR)
        live.send("i")
        live.wait_for("inject")
        live.send("x[/dim](2)\r")
        live.wait_for("[/dim]")
        live.send("\x1b")
        live.wait_for("set_MODE(2)")
        with PtyTerminal("attach", "a", "--sessions", str(shell.sessions), columns=200, rows=50) as late:
            late.wait_for(ERROR)
            late.send("7z")  # the log alone
            late.wait_for(ERROR)
            late.send("z2z")  # the feedback alone
            late.wait_for("feedback")
            assert late.process.poll() is None
        assert live.process.poll() is None
    assert ERROR in shell.here("attach", "a")
    assert ERROR in shell.here("tail", "a", "-n", "50")
    shell.here("stop", "a")
    assert "Traceback" not in log_of(session)
    record = (session / "journal.jsonl").read_bytes()
    for text in (ERROR, REASON):
        assert json.dumps(text, ensure_ascii=False)[1:-1].encode() in record
    failed = next(row for row in folded(session).rows if row.outcome == "BuildFailed")
    (told,) = [one for one in events(session, ev.CandidateEnded) if one.candidate == failed.number]
    assert told.outcome.reason.endswith(f"error: #error {ERROR}")
    log = session / "candidates" / str(failed.number) / "build.log"
    assert f"#error {ERROR}" in log.read_text(encoding="utf-8")
    feedback = json.loads((session / "candidates" / str(failed.number) / "feedback.json").read_text(encoding="utf-8"))
    assert ERROR in json.dumps(feedback, ensure_ascii=False)
    planned = [one for one in events(session, ev.Planned) if one.candidate > 0]
    assert {one.proposal.reason for one in planned} == {REASON}


def test_any_text_of_people_and_agents(shell: Shell) -> None:
    """Every piece goes in by a request and by an agent's reason; whatever reads the session shows it on its line."""
    (shell.folder / "script.json").write_text(
        json.dumps([{"moves": "apply_vectorize(8)", "reason": text} for text in HOSTILE]), encoding="utf-8"
    )
    session = shell.start(agent="script:script.json", device="ridge,series_s=0.2", set="exhausted_rounds=1000000")
    for text in HOSTILE:
        if "\x00" not in text:
            subprocess.run(shell.words("mark", "a", text), env=shell.environment, cwd=shell.folder, check=True)
    until(lambda: ended(session) >= 2)
    shell.here("stop", "a")
    notes = [one.body["note"] for one in events(session, ev.RequestTaken) if one.what == "mark"]
    assert notes == [text for text in HOSTILE if "\x00" not in text]
    for command in (("tail", "a", "-n", "200"), ("show", "a"), ("status", "a"), ("attach", "a"), ("replay", "a")):
        shown = shell.here(*command)
        assert not any(one in shown for one in "\x00\x1b\x9b\r\u202e"), command
    with PtyTerminal("attach", "a", "--sessions", str(shell.sessions)) as terminal:
        terminal.wait_for("STOPPED")
        terminal.read(0.5)
        terminal.send("q")
        assert terminal.exit_code() == 0
        assert terminal.modes_restored()


def test_names_of_folders_with_markup(shell: Shell, recorded: Path) -> None:
    folder = shell.folder / "[dim] [red]x [@click=app.exit()] é"
    recorded.parent.rename(folder)
    for command in ("show", "status", "tail", "attach"):
        assert shell.here(command, "a", "--sessions", str(folder))
    with PtyTerminal("attach", "a", "--sessions", str(folder)) as terminal:
        terminal.wait_for("DONE")
        terminal.send("e")
        terminal.wait_for("simulated")
        assert terminal.process.poll() is None
