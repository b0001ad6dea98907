"""export and verify as a person uses them: real processes, a real file, a real compiler."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cake_tui import registry
from cake_tui.exporters.c import PLUGIN
from cake_tui.store.lock import take_device
from tests.exporters.bundles import bundle

pytestmark = pytest.mark.cc


def cake(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CAKE_TUI_LOCKS": str(cwd / "locks"), "CAKE_TUI_WHO": "ada"}
    return subprocess.run(
        [sys.executable, "-m", "cake_tui", *words], cwd=cwd, env=environment, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp_path = tmp_path_factory.mktemp("finished")
    words = ["run", "matmul_bias_relu", "--name", "s", "--backend", "simulated", "--shape", "M=64,N=48,K=33"]
    done = cake(*words, "--candidates", "6", "--seed", "1", "--headless", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_a_simulated_session_is_exported_only_when_asked_for_and_says_so(finished: Path) -> None:
    refused = cake("export", "s", "--output", "best.c", cwd=finished)
    assert refused.returncode == 6
    assert len(refused.stderr.splitlines()) == 1
    assert "simulated" in refused.stderr
    assert not (finished / "best.c").exists()
    allowed = cake("export", "s", "--output", "best.c", "--allow-simulated", cwd=finished)
    assert allowed.returncode == 0, allowed.stderr
    assert "SIMULATED" in (finished / "best.c").read_text(encoding="utf-8")


def test_an_export_is_verified_and_a_tampered_one_is_not(finished: Path) -> None:
    assert cake("export", "s", "--output", "good.c", "--allow-simulated", cwd=finished).returncode == 0
    done = cake("verify", "good.c", "--json", cwd=finished)
    found = json.loads(done.stdout)
    assert (done.returncode, found["passed"], found["simulated"]) == (0, True, True)
    assert found["max_abs_err"] < 5e-5
    assert found["harness"]["passed"] is True
    text = (finished / "good.c").read_text(encoding="utf-8")
    (finished / "bad.c").write_text(
        text.replace("// ---- end of kernel", "int x;\n// ---- end of kernel"), encoding="utf-8"
    )
    bad = cake("verify", "bad.c", cwd=finished)
    assert bad.returncode == 7
    assert len(bad.stderr.splitlines()) == 1


def test_nothing_is_verified_on_a_device_that_a_session_uses(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cake("export", "s", "--output", "while.c", "--allow-simulated", cwd=finished).returncode == 0
    monkeypatch.setenv("CAKE_TUI_LOCKS", str(finished / "locks"))
    held = take_device(registry.load("backends", "cpu").devices()[0].uuid, "other", "bob")
    assert held is not None
    done = cake("verify", "while.c", cwd=finished)
    held.release()
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (4, "", 1)
    assert 'session "other" of bob' in done.stderr
    assert done.stderr.endswith("wait until it ends, or stop it: cake-tui stop other\n")
    held = take_device(registry.load("backends", "cpu").devices()[0].uuid, "verify best.c", "bob")
    assert held is not None
    done = cake("verify", "while.c", cwd=finished)
    held.release()
    assert f'"verify best.c" of bob (PID {os.getpid()}' in done.stderr
    assert done.stderr.endswith(f"stop it: kill {os.getpid()}\n")
    assert cake("verify", "while.c", cwd=finished).returncode == 0


def test_an_existing_file_is_overwritten_only_with_force(finished: Path) -> None:
    (finished / "mine.c").write_text("precious", encoding="utf-8")
    words = ("export", "s", "--output", "mine.c", "--allow-simulated")
    refused = cake(*words, cwd=finished)
    assert refused.returncode == 2
    assert "--force" in refused.stderr
    assert (finished / "mine.c").read_text(encoding="utf-8") == "precious"
    assert cake(*words, "--force", cwd=finished).returncode == 0


def test_force_replaces_files_and_what_links_lead_to_and_nothing_else(finished: Path) -> None:
    folder = finished / "kinds"
    folder.mkdir()
    os.mkfifo(folder / "pipe.c")
    (folder / "folder.c").mkdir()
    (folder / "file").write_text("old", encoding="utf-8")
    (folder / "link.c").symlink_to("file")
    (folder / "dangling.c").symlink_to("made")
    for name in ("pipe.c", "folder.c", "link.c", "dangling.c"):
        words = ("export", "s", "--output", f"kinds/{name}", "--allow-simulated")
        assert cake(*words, cwd=finished).returncode == 2
        assert cake(*words, "--force", cwd=finished).returncode == (2 if name in ("pipe.c", "folder.c") else 0)
    assert (folder / "pipe.c").is_fifo()
    assert list((folder / "folder.c").iterdir()) == []
    for name, target in (("link.c", "file"), ("dangling.c", "made")):
        assert (folder / name).is_symlink()
        assert "SIMULATED" in (folder / target).read_text(encoding="utf-8")
    assert len(list(folder.iterdir())) == 6


@pytest.mark.parametrize("ending", [".py", ".cu", ".C", ""])
def test_an_ending_that_verify_would_not_know_is_refused_before_anything_is_written(
    finished: Path, ending: str
) -> None:
    for more in ((), ("--format", "c")):
        done = cake("export", "s", "--allow-simulated", "--force", "--output", f"other{ending}", *more, cwd=finished)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert f"other{ending} ends in {ending or 'nothing'}" in done.stderr
        assert done.stderr.endswith("allowed: .c, as other.c\n")
    assert not (finished / f"other{ending}").exists()


def test_a_time_far_over_the_stated_one_is_told_with_what_may_be_the_reason(finished: Path) -> None:
    made = bundle(time_us=0.01, pair_noise=0.004)
    (finished / "slow.c").write_text(PLUGIN.write(made), encoding="utf-8")
    done = cake("verify", "slow.c", cwd=finished)
    assert done.returncode == 0, done.stderr
    first, other = done.stdout.splitlines()
    assert first.startswith(f"slow.c: ok: candidate 12, kernel id {made.lowered.sha256[:12]}, ")
    found = re.fullmatch(
        r"slow.c: (\d+)× the stated time; fastest (.+); load \d+\.\d on \d+ logical processors; stated for a CPU, .*",
        other,
    )
    assert found is not None, other
    assert int(found[1]) > 10
    (finished / "fast.c").write_text(PLUGIN.write(bundle(time_us=10_000.0)), encoding="utf-8")
    assert json.loads(cake("verify", "fast.c", "--json", cwd=finished).stdout)["notice"] == ""


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("export", "nobody"), 2),
        (("export", "s", "--candidate", "999", "--allow-simulated"), 2),
        (("export", "s", "--format", "cuda", "--allow-simulated"), 2),
        (("export", "s", "--output", "no/such/folder/x.c", "--allow-simulated"), 2),
        (("verify", "no-such-file.c"), 2),
        (("verify", "."), 2),
    ],
)
def test_each_mistake_is_one_line(finished: Path, words: tuple[str, ...], code: int) -> None:
    done = cake(*words, cwd=finished)
    assert done.returncode == code, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_what_is_no_export_or_no_place_for_one_is_named(finished: Path) -> None:
    (finished / "empty.c").write_bytes(b"")
    (finished / "half.c").write_text("// cake-tui export 1 {", encoding="utf-8")
    for file in ("empty.c", "half.c", "/dev/zero", "/dev/null", "gone.c", "."):
        done = cake("verify", file, "--format", "c", cwd=finished)
        assert done.returncode == 2, done.stderr
        assert done.stderr.count("\n") == 1
        assert done.stderr.startswith(file)
    for place in ("x" * 300 + ".c", "gone/best.c", "/proc/best.c", "."):
        done = cake("export", "s", "--allow-simulated", "--output", place, cwd=finished)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
