"""How commands end: exit codes, one line on stderr, reports of bugs, signals, closed pipes, any locale."""

from __future__ import annotations

import errno
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cake_tui import registry
from cake_tui.cli import main, parser_of
from cake_tui.cli._ending import exit_code_of
from cake_tui.errors import BUSY, UserError

ROOT = Path(__file__).parents[2]


def command(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        [sys.executable, "-m", "cake_tui", *arguments], cwd=cwd, env=env, capture_output=True, check=False
    )


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize("name", registry.names("cli"))
def test_every_command_has_help_with_an_example_of_its_own(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser, command = parser_of(name)
    assert command.example.startswith(f"cake-tui {name}")
    assert main([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert command.example in shown
    assert registry.docstring("cli", name) in " ".join(shown.split())
    for action in parser._actions:
        assert action.help, f"{name}: {action.dest} has no help"


def test_overview_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for name in registry.names("cli"):
        assert re.search(rf"^  {name} ", shown, re.MULTILINE)
    assert main(["--version"]) == 0
    assert re.fullmatch(r"cake-tui \d+\.\d+\.\d+\S*\n", capsys.readouterr().out)


def test_only_the_chosen_commands_module_is_imported(tmp_path: Path) -> None:
    code = (
        "import sys; from cake_tui.cli import main; main(['new', '--help']);"
        "found = [m for m in sys.modules if m.startswith('cake_tui.cli.') and '._' not in m];"
        "print(found, file=sys.stderr)"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "['cake_tui.cli.new']"


WRONG = [
    (["rnu"], 'no command "rnu" (did you mean "run"?)'),
    (["acitons"], 'did you mean "actions"?'),
    (["--vresion"], 'unknown flag "--vresion" (did you mean "--version"?)'),
    (["actions", "--jsn"], 'unknown flag "--jsn" (did you mean "--json"?); see: cake-tui actions --help'),
    (["run", "--candidate", "3"], 'did you mean "--candidates"?'),
    (["run", "--candidate=3"], 'unknown flag "--candidate" (did you mean "--candidates"?)'),
    (["actions", "--target", "cude"], "found 'cude', allowed: c, cuda (did you mean \"cuda\"?)"),
    (["doctor", "--comparisons", "many"], "--comparisons: found 'many', allowed: a whole number"),
    (["doctor", "--comparisons"], "--comparisons: expected one argument"),
    (["actions", "a", "b"], 'one argument too many: "b"'),
    (["new"], "missing: NAME"),
    (["new", "x"], "one of the arguments --from --template is required"),
    (["new", "x", "--from", "a", "--template", "b"], "not allowed with argument"),
    (["check"], "missing: KERNEL"),
]


@pytest.mark.parametrize(("arguments", "said"), WRONG)
def test_usage_mistakes_are_one_line_and_exit_2(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert said in shown.err
    assert list(tmp_path.iterdir()) == []


def test_the_users_mistake_keeps_its_code_and_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    def act() -> int:
        raise UserError("a.toml:1: one\na.toml:2: two \x1b[31m\u2028red", BUSY)

    assert exit_code_of(act, []) == 4
    assert capsys.readouterr().err == "a.toml:1: one\na.toml:2: two \\x1b[31m\\u2028red\n"


def test_a_bug_is_reported_with_its_traceback_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def act() -> int:
        raise ZeroDivisionError("first line\nsecond line")

    assert exit_code_of(act, ["run", "--name", "\udcff"]) == 1
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    report = Path(shown.rpartition("traceback in ")[2].strip())
    assert report.is_relative_to(tmp_path)
    text = report.read_text(encoding="utf-8")
    assert "in act" in text
    assert "ZeroDivisionError: first line\nsecond line" in text


def test_a_bug_without_a_place_for_its_report_shows_the_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

    def act() -> int:
        raise KeyError("lost")

    assert exit_code_of(act, []) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_unwinds_and_becomes_its_code(number: signal.Signals, code: int, tmp_path: Path) -> None:
    def act() -> int:
        try:
            os.kill(os.getpid(), number)
            signal.pause()
        finally:
            (tmp_path / "unwound").write_text("", encoding="utf-8")
        return 0

    handlers = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)]
    assert exit_code_of(act, []) == code
    assert (tmp_path / "unwound").exists()
    assert [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)] == handlers


def test_an_interrupt_while_modules_load_is_quiet(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "class Late:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'cake_tui.cli._parser': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Late())\n"
        "from cake_tui.__main__ import main\n"
        "sys.exit(main())\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_an_ignored_hang_up_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert exit_code_of(lambda: os.kill(os.getpid(), signal.SIGHUP) or 0, []) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    shell = f"{sys.executable} -m cake_tui --help | true; echo ${{PIPESTATUS[0]}}"
    for _ in range(3):
        done = subprocess.run(
            ["bash", "-c", shell], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stderr == ""
        assert done.stdout.strip() in ("0", "141")


def test_a_terminal_that_hangs_up_is_quiet(tmp_path: Path) -> None:
    """The command still writes when its terminal has gone; hang-up is ignored, as under nohup."""
    keeper, terminal = pty.openpty()
    code = (
        "import signal, sys, time; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from cake_tui.cli._ending import exit_code_of\n"
        "def act():\n"
        "    open('ready', 'w').close()\n"
        "    while True:\n"
        "        print('line', flush=True); time.sleep(0.01)\n"
        "sys.exit(exit_code_of(act, []))\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path)}
    child = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, stdin=terminal, stdout=terminal, stderr=terminal,
        start_new_session=True,
    )  # fmt: skip
    os.close(terminal)
    while not (tmp_path / "ready").exists():
        assert child.poll() is None
        time.sleep(0.01)
    os.close(keeper)
    assert child.wait(60) == 129
    assert not (tmp_path / "cake-tui").exists()  # no report of a bug


def test_an_input_output_error_of_a_disk_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    def act() -> int:
        raise OSError(errno.EIO, "Input/output error")

    assert exit_code_of(act, []) == 1
    assert "traceback in" in capsys.readouterr().err


def test_no_locale_makes_an_encoding_error(tmp_path: Path) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""}
    made = command("new", "mine", "--from", "matmul_bias_relu", cwd=tmp_path, **plain)
    assert made.returncode == 0, made.stderr
    toml = tmp_path / "kernels/mine/kernel.toml"
    toml.write_text(toml.read_text(encoding="utf-8").replace("relu(A·B + bias)", "Übung – 矩阵 🙂"), encoding="utf-8")
    listed = command("actions", "mine", "--json", cwd=tmp_path, **plain)
    assert listed.returncode == 0, listed.stderr
    assert json.loads(listed.stdout.decode("utf-8"))["kernel"] == "mine"
    assert command(cwd=tmp_path, **plain).returncode == 0
    text = command("actions", cwd=tmp_path, **plain)
    assert text.returncode == 0
    assert text.stdout.isascii()
    wrong = command("check", "übung", cwd=tmp_path, **plain)
    assert wrong.returncode == 2
    assert wrong.stderr.count(b"\n") == 1


def test_arguments_that_are_no_text_are_refused_in_one_line(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    arguments = [sys.executable.encode(), b"-m", b"cake_tui", b"new", b"\xff\xfe", b"--from", b"matmul_bias_relu"]
    done = subprocess.run(arguments, cwd=tmp_path, env=env, capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_working_folder_that_is_gone_is_no_bug(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["run", "--backend", "simulated", "--headless"]) == 3
    assert capsys.readouterr().err == "the working folder is gone; change into one that is there\n"
