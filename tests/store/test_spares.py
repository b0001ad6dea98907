"""Files and folders made ahead: private, each given once, none needed to write, nothing left behind."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cake_tui.store.clock import Clocks
from cake_tui.store.session import Session, create, open_locked
from cake_tui.store.spares import FILES, FOLDERS, Spares
from tests.engine.scripted import until
from tests.store import journals


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return create(tmp_path, journals.created("a"), Clocks(), who="somebody")


def taken(spares: Spares, count: int) -> tuple[list[Path], list[Path]]:
    """Take so many files and folders, waiting for each."""
    return [Path(until(spares.file)) for _ in range(count)], [Path(until(spares.folder)) for _ in range(count)]


def test_each_is_private_and_given_once_and_what_is_left_goes(tmp_path: Path) -> None:
    spares = Spares(f"{tmp_path}/.spares.new")
    files, folders = taken(spares, 3 * FILES)
    assert len({*files, *folders}) == 6 * FILES
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}
    files[0].rename(tmp_path / "mine")
    spares.close()
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_the_stock_stays_small_however_much_is_taken(tmp_path: Path) -> None:
    spares = Spares(f"{tmp_path}/.spares.new")
    for _ in range(20):
        files, folders = taken(spares, FOLDERS)
        for path in files:
            path.unlink()
        for path in folders:
            path.rmdir()
    assert len(list((tmp_path / ".spares.new").rglob("*"))) <= 4 * (FILES + FOLDERS)
    spares.close()


def test_where_none_can_be_made_there_are_none_and_files_are_written_all_the_same(session: Session) -> None:
    (session.path / ".spares.new").write_text("in the way", encoding="utf-8")
    for number in range(2 * FILES):
        session.write(number, "kernel.c", f"// {number}")
        assert (session.candidate(number) / "kernel.c").read_text(encoding="utf-8") == f"// {number}"
    session.close()


def test_a_stock_that_somebody_replaced_holds_nothing_up(session: Session) -> None:
    session.write(0, "kernel.c", "")
    until(lambda: len(list((session.path / ".spares.new").rglob("file-*"))) >= FILES)
    shutil.rmtree(session.path / ".spares.new")
    (session.path / ".spares.new").write_text("in the way", encoding="utf-8")
    for number in range(3):
        session.write(number, "kernel.c", f"// {number}")
        assert (session.candidate(number) / "kernel.c").read_text(encoding="utf-8") == f"// {number}"
    session.close()


def test_what_cannot_be_put_in_its_place_is_named_by_that_place(session: Session) -> None:
    (session.candidate(0) / "kernel.c" / "in the way").mkdir(parents=True)
    with pytest.raises(IsADirectoryError) as found:
        session.write(0, "kernel.c", "")
    assert found.value.filename == str(session.candidate(0) / "kernel.c")
    session.close()


def test_what_is_written_is_private_whole_and_the_only_thing_there(session: Session) -> None:
    for number in range(FILES):
        for text in ("first", "second", "x" * 100_000):
            session.write(number, "kernel.c", text)
        session.write(number, "schedule.txt", "")
    session.close()
    assert not [path.name for path in session.path.iterdir() if path.name.startswith(".")]
    for number in range(FILES):
        folder = session.candidate(number)
        assert folder.stat().st_mode & 0o777 == 0o700
        assert {path.name: path.stat().st_size for path in folder.iterdir()} == {"kernel.c": 100_000, "schedule.txt": 0}
        assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_a_folder_keeps_what_an_earlier_engine_wrote_and_comes_back_where_it_was_taken_away(session: Session) -> None:
    session.candidate(3).mkdir(parents=True)
    (session.candidate(3) / "kernel.c").write_text("old", encoding="utf-8")
    session.write(3, "feedback.json", "{}")
    assert (session.candidate(3) / "kernel.c").read_text(encoding="utf-8") == "old"
    shutil.rmtree(session.candidate(3))
    session.write(3, "feedback.json", "{ }")
    assert [path.name for path in session.candidate(3).iterdir()] == ["feedback.json"]
    (session.path / ".spares.new").rename(session.path / ".elsewhere.new")
    session.write(4, "feedback.json", "{}")
    assert (session.candidate(4) / "feedback.json").read_text(encoding="utf-8") == "{}"
    session.close()


def test_what_a_killed_engine_had_in_stock_goes_when_the_next_one_opens(session: Session) -> None:
    session.write(0, "kernel.c", "")
    until(lambda: (session.path / ".spares.new").exists())
    session.close()
    shutil.copytree(session.candidate(0), session.path / ".spares.new" / "0")  # as if nobody had closed it
    session.lock.release()
    assert not (open_locked(session.path, who="y").path / ".spares.new").exists()
