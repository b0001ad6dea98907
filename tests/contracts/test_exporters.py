"""What every exporter keeps, whichever the registry finds: it writes a session's kernels and reads them back."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from cake_tui import registry
from cake_tui.cli import main
from cake_tui.errors import UserError
from cake_tui.exporters import Bundle, Exporter
from cake_tui.model.history import History
from cake_tui.store import export, snapshot
from tests.exporters.bundles import cuda_bundle

EXPORTERS = registry.names("exporters")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, History]:
    """A short simulated session of all structures."""
    folder = tmp_path_factory.mktemp("exporting")
    run = ["run", "matmul_bias_gelu", "--shape", "M=33,N=18,K=21", "--name", "first", "--agent", "random"]
    with contextlib.chdir(folder):
        assert main([*run, "--backend", "simulated", "--candidates", "6", "--headless"]) == 0
    path = folder / "sessions/first"
    return path, snapshot.fold(path).history


def bundles(name: str, session: tuple[Path, History]) -> list[Bundle]:
    """Return kernels that the format is for: a session's, for ``cuda`` two made for a GPU."""
    if name == "cuda":
        return [cuda_bundle("naive"), cuda_bundle("split_k")]
    path, history = session
    numbers = [row.number for row in history.rows if row.outcome == "Measured"]
    return [export.bundle(path, history, number, allow_simulated=True) for number in numbers]


@pytest.mark.parametrize("name", EXPORTERS)
def test_every_kernel_of_a_session_is_written_and_read_back(name: str, session: tuple[Path, History]) -> None:
    exporter: Exporter = registry.load("exporters", name)
    assert exporter.suffix.startswith(".")
    found = bundles(name, session)
    assert len({bundle.lowered.structure for bundle in found}) >= 2
    for bundle in found:
        text = exporter.write(bundle)
        assert exporter.read(text) == bundle
        assert exporter.write(bundle) == text
        assert bundle.lowered.structure in text


@pytest.mark.parametrize("name", EXPORTERS)
@pytest.mark.parametrize("text", ["", "int main(void) { return 0; }\n", "{}", "\x00\ud800", "[" * 1000], ids=repr)
def test_a_text_of_another_hand_is_the_users_mistake(name: str, text: str) -> None:
    exporter: Exporter = registry.load("exporters", name)
    with pytest.raises(UserError) as error:
        exporter.read(text)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("name", EXPORTERS)
def test_a_cut_file_is_refused(name: str, session: tuple[Path, History]) -> None:
    exporter: Exporter = registry.load("exporters", name)
    text = exporter.write(bundles(name, session)[-1])
    for length in (len(text) // 3, len(text) // 20):
        with pytest.raises(UserError):
            exporter.read(text[:length])


@pytest.mark.parametrize("name", EXPORTERS)
def test_the_command_writes_what_the_exporter_says_and_overwrites_nothing(
    name: str, session: tuple[Path, History], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = session
    exporter: Exporter = registry.load("exporters", name)
    target = tmp_path / f"kernel{exporter.suffix}"
    wanted = ["export", "first", "--sessions", str(path.parent), "--format", name, "--output", str(target)]
    assert main([*wanted, "--candidate", "0"]) == 6  # simulated figures, and nobody asked for those
    assert not target.exists()
    if name == "cuda":
        assert main([*wanted, "--candidate", "0", "--allow-simulated"]) == 2  # the session's kernels are C
        return
    assert main([*wanted, "--candidate", "0", "--allow-simulated"]) == 0
    written = target.read_text(encoding="utf-8")
    assert exporter.read(written).candidate == 0
    assert main([*wanted, "--allow-simulated"]) == 2  # the best is another one
    assert target.read_text(encoding="utf-8") == written
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.cc
def test_standalone_c_of_a_kernel_that_includes_nothing_compiles(
    session: tuple[Path, History], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plain loops need no header; the harness behind them does."""
    path, _ = session
    target = tmp_path / "naive.c"
    base = ["export", "first", "--sessions", str(path.parent), "--candidate", "0", "--allow-simulated"]
    assert main([*base, "--output", str(target)]) == 0
    assert main(["verify", str(target)]) == 0
    assert "ok: candidate 0" in capsys.readouterr().out
