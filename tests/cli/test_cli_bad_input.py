"""Bad input of every kind: exit code 2, one line a mistake with what is allowed, and no folder is made."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cake_tui.cli import main
from cake_tui.config import RANGES, Settings
from cake_tui.errors import UserError

ROOT = Path(__file__).parents[2]
RUN = ["run", "--backend", "simulated", "--headless"]
TEXT = st.text(max_size=30) | st.text(alphabet="abz_-./~ \t\n=,0159\x00\x1b\u2028é", max_size=12)
FUZZ = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path.parent / "cache"))
    monkeypatch.setenv("CAKE_TUI_LOCKS", str(tmp_path.parent / "locks"))


def refused(arguments: list[str], capfd: pytest.CaptureFixture[str], lines: int = 1) -> str:
    before = sorted(Path().rglob("*"))
    code = main(arguments)
    shown = capfd.readouterr()
    assert code == 2, (arguments, code, shown)
    assert shown.out == ""
    assert shown.err.count("\n") == lines, shown.err
    assert "Traceback" not in shown.err
    assert sorted(Path().rglob("*")) == before
    return shown.err


NAMES = ["", ".", "..", "a/b", "/abs", "../up", ".hidden", "a b", "a\nb", "x" * 65, "ünï", "a\x1b[2J", "~", "a\0b"]


@pytest.mark.parametrize("name", NAMES)
def test_a_session_name_that_is_none_makes_nothing(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert "session name: found" in refused([*RUN, f"--name={name}"], capfd)
    assert "session name: found" in refused(["attach", "--", name], capfd)


@FUZZ
@given(name=TEXT)
def test_any_text_as_a_kernel_name_is_refused_or_unknown(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    err = refused(["actions", "--", name], capfd)
    assert "kernel name: found" in err or "no kernel" in err


@FUZZ
@given(name=TEXT)
def test_any_text_as_a_new_kernels_name_makes_nothing_but_a_kernel(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    refused(["new", "--from", "matmul_bias_rlu", "--", name], capfd)


@FUZZ
@given(word=TEXT.filter(bool))
def test_any_text_as_a_command_or_an_agent_is_one_line(word: str, capfd: pytest.CaptureFixture[str]) -> None:
    refused([f"{word}?"], capfd)
    assert "no setting" in refused([*RUN, f"--set={word.replace('=', '')}?=1"], capfd)


@FUZZ
@given(flag=st.text(alphabet="abcdefgh-=", min_size=1, max_size=10))
def test_any_unknown_flag_is_refused(flag: str, capfd: pytest.CaptureFixture[str]) -> None:
    refused(["doctor", f"--zz{flag}"], capfd)


SETTINGS = [
    (["--set", "raund=3"], 'no setting "raund" (did you mean "round"?)'),
    (["--set", "round"], "allowed: SETTING=VALUE"),
    (["--set", "round=0"], "setting \"round\": found '0', allowed: 1 to 64"),
    (["--set", "round=four"], "allowed: a whole number from 1 to 64"),
    (["--set", "round=2.5"], "allowed: a whole number"),
    (["--set", "audit=nan"], 'setting "audit": found'),
    (["--set", "hours=inf"], 'setting "hours": found'),
    (["--set", "screen=maybe"], "allowed: true, false"),
    (["--set", "candidates=1e99"], 'setting "candidates": found'),
    (["--candidates", "-3"], 'setting "candidates": found'),
    (["--hours", "soon"], 'setting "hours": found'),
    (["--seed", "x"], "--seed: found 'x', allowed: a whole number"),
    (["--seed", "-1"], "--seed: found -1"),
    (["--agent", "bandid"], 'no agent "bandid" (did you mean "bandit"?)'),
    (["--goal", "fast"], "goal"),
    (["--shape", "M=0"], 'M: found "0", allowed: a whole number from 1'),
    (["--shape", "Q=3"], 'no size "Q"'),
    (["--device", "simulated:nothing"], "nothing"),
    (["--from", "nowhere"], "nowhere"),
    (["--sessions", ""], '--sessions: found "", allowed: the name of a folder'),
    (["--sessions", "x" * 300], "allowed: the name of a folder"),
    (["--name=--"], '--name: found "--"'),
    (["--backend", "cpuu"], 'did you mean "cpu"?'),
]


@pytest.mark.parametrize(("flags", "said"), SETTINGS)
def test_a_wrong_flag_or_setting_makes_no_session(
    flags: list[str], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert said in refused([*RUN, *flags], capfd)


def test_several_wrong_settings_come_in_one_go(capfd: pytest.CaptureFixture[str]) -> None:
    err = refused([*RUN, "--set", "round=0", "--set", "audit=7", "--set", "patience=x"], capfd, lines=3)
    assert [line.split('"')[1] for line in err.splitlines()] == ["round", "audit", "patience"]


def test_a_mistake_in_actions_toml_makes_no_session(capfd: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "actions.toml").read_text(encoding="utf-8")
    Path("actions.toml").write_text(text.replace("hints", "hint", 1).replace('"macro"', "macro", 1), encoding="utf-8")
    assert "strings need quotes" in refused([*RUN, "--name", "first"], capfd)
    Path("actions.toml").write_text(text.replace("\nhints =", "\nhint =", 2), encoding="utf-8")
    for arguments in ([*RUN, "--name", "first"], ["actions"], ["actions", "--disable", "apply_unroll"]):
        err = refused(arguments, capfd, lines=2)
        assert all(line.startswith("actions.toml:") and "hint: unknown key" in line for line in err.splitlines())


def test_a_mistake_in_kernel_toml_makes_no_session(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "mine", "--from", "matmul_bias_relu"]) == 0
    path = Path("kernels/mine/kernel.toml")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"last"', '"lst"').replace("2*M*N*K", "2*M*N*"), encoding="utf-8")
    capfd.readouterr()
    for arguments in ([*RUN[:1], "mine", *RUN[1:], "--name", "first"], ["actions", "mine"]):
        err = refused(arguments, capfd, lines=2)
        assert all(line.startswith("kernels/mine/kernel.toml:") for line in err.splitlines())


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"[[action]\n", b"x = 1\n" * 200_000])
def test_rubbish_in_place_of_actions_toml_makes_no_session(content: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    Path("actions.toml").write_bytes(content)
    assert refused([*RUN, "--name", "first"], capfd).startswith("actions.toml")


def test_a_folder_or_a_dangling_link_in_place_of_actions_toml_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    Path("actions.toml").mkdir()
    assert "a folder stands where a file is needed" in refused(["actions"], capfd)
    Path("actions.toml").rmdir()
    Path("actions.toml").symlink_to("nowhere")
    assert "no such file" in refused(["actions"], capfd)


# --- settings -----------------------------------------------------------------------------------------

VALUES = st.one_of(
    st.text(max_size=8), st.integers(), st.floats(), st.booleans(), st.none(), st.lists(st.integers(), max_size=2)
)


@given(st.sampled_from(sorted(Settings().flat())) | st.text(max_size=10), VALUES)
def test_any_value_of_any_setting_is_taken_in_its_range_or_refused_in_one_line(name: str, value: object) -> None:
    try:
        found = Settings().changed(**{name: value}).flat()[name]
    except UserError as error:
        message = str(error)
    else:
        message = ""
        low, high = RANGES.get(name, (0, 1))
        assert low <= found <= high
        assert type(found) is type(Settings().flat()[name])
    assert "\n" not in message


def test_settings_survive_being_written_flat_and_skip_those_of_newer_versions() -> None:
    changed = Settings().changed(round="6", screen="off", audit=0.25)
    assert Settings.from_flat({**changed.flat(), "of_the_future": 1}) == changed
    assert (changed.proposing.round, changed.proposing.screen, changed.proposing.audit) == (6, False, 0.25)


def test_the_users_mistakes_come_before_what_the_machine_lacks(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    run = ["run", "--backend", "cpu", "--headless", "--name", "first"]
    assert 'did you mean "matmul_bias_relu"?' in refused([*run, "matmul_bias_rlu"], capfd)
    Path("actions.toml").write_text("[[action]]\nenabled = True\n", encoding="utf-8")
    assert "true and false are lower case" in refused(run, capfd)
