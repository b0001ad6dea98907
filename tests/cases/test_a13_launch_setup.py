"""A13 on a stand-in GPU: launches beyond a limit are refused with both numbers, and the run goes on."""

from __future__ import annotations

import pytest

from cake_tui.model.row import Row
from tests.cases.on_gpu import by_knob, make_kernel, put_on_path, run
from tests.cases.shell import Shell
from tests.engine.scripted import folded

pytestmark = pytest.mark.cc


def refused(row: Row, *parts: str) -> None:
    assert row.outcome in ("Rejected", "LaunchFailed"), row.outcome
    for part in parts:
        assert part in row.reason, row.reason


def test_grids_and_blocks_beyond_the_device_are_refused_with_their_numbers(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_on_path(shell, monkeypatch)
    make_kernel(shell, "ROWS = [8, 70008, 33, 4]", grid_y="ROWS", block_y="ROWS % 1000")
    session = run(shell, 2, "--headless")
    found = by_knob(session, "ROWS")
    assert (found[8].outcome, found[4].outcome) == ("Measured", "Measured")
    refused(found[33], "1056", "1024")
    refused(found[70008], "70008", "65535")
    assert folded(session).state == "done"
    assert folded(session).effective == 2


def test_a_size_that_is_no_int_is_refused_by_its_name(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    put_on_path(shell, monkeypatch)
    make_kernel(shell, "ROWS = [8, 4]", m=2**31)
    words = ("run", "faulty", "--backend", "cuda", "--agent", "grid", "--name", "a", "--headless")
    out, err = shell.apart(*words, code=2)
    assert "M" in out + err
    assert str(2**31) in out + err
