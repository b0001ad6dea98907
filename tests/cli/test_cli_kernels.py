"""`new`, `check`, `actions` and `doctor` for real: what they print, what they find, their exit codes."""

from __future__ import annotations

import contextlib
import json
import stat
from pathlib import Path

import pytest

from cake_tui.cli import main

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("CAKE_TUI_LOCKS", str(tmp_path / "locks"))


def tell(arguments: list[str], capfd: pytest.CaptureFixture[str], code: int = 0) -> str:
    found = main(arguments)
    shown = capfd.readouterr()
    assert found == code, shown
    return shown.out if code in (0, 7) else shown.err


# --- check --------------------------------------------------------------------------------------------


@pytest.mark.cc
@pytest.mark.parametrize("kernel", ["matmul_bias_relu", "matmul_bias_gelu", "matmul_bias_relu_template"])
def test_every_shipped_kernel_passes_its_check(kernel: str, capfd: pytest.CaptureFixture[str]) -> None:
    found = json.loads(tell(["check", kernel, "--backend", "cpu", "--shape", "M=130,N=67,K=39", "--json"], capfd))
    assert found["passed"] is True
    assert found["reason"] is None
    assert 0 < found["bound_share"] < 0.5
    cases = {case["case"]: case for case in found["self_test"]}
    assert {case["expected"] for case in cases.values()} == {"accepted", "refused"}
    assert all(case["expected"] == case["found"] for case in cases.values())


@pytest.mark.cc
def test_a_kernel_of_ones_own_is_made_checked_and_found_wrong(capfd: pytest.CaptureFixture[str]) -> None:
    tell(["new", "mine", "--from", "matmul_bias_relu_template"], capfd)
    source = Path("kernels/mine/kernel.c")
    text = source.read_text(encoding="utf-8")
    assert "mine: ok" in tell(["check", "mine", "--shape", "M=40,N=70,K=33"], capfd)

    source.write_text("// größer – 速い µ-kernel 🙂\n" + text, encoding="utf-8")
    assert "mine: ok" in tell(["check", "mine", "--shape", "M=40,N=70,K=33"], capfd)

    source.write_text(text.replace("+ bias[n0 + n]", "+ bias[n0]"), encoding="utf-8")
    said = tell(["check", "mine", "--shape", "M=40,N=70,K=33"], capfd, code=7)
    assert "mine: WRONG: wrong answer" in said

    source.write_text(text.replace("const int n0", "const it n0"), encoding="utf-8")
    said = tell(["check", "mine", "--shape", "M=40,N=70,K=33"], capfd, code=7)
    assert "it does not build: kernel.c" in said
    assert "error" in said


@pytest.mark.cc
def test_inputs_that_hide_mistakes_are_found_by_the_self_test(capfd: pytest.CaptureFixture[str]) -> None:
    tell(["new", "blind", "--from", "matmul_bias_relu"], capfd)
    path = Path("kernels/blind/kernel.toml")
    path.write_text(path.read_text(encoding="utf-8") + "tolerance_abs = 1e6\ntolerance_units = 1e9\n", encoding="utf-8")
    said = tell(["check", "blind", "--shape", "M=33,N=33,K=33"], capfd, code=7)
    assert "the check cannot tell right from wrong here" in said
    assert "WRONG: must be refused" in said


SCALE = """\
void scale(const int task[3], const float *x, float *y SIZES) {
  for (int i = 0; i < N; i++) y[i] = 2.0f * x[i];
}
"""
SCALE_TOML = """\
template = "kernel.c"
entry = "scale"
reference = "REFERENCE"
shapes = [{ N = 3000 }]
buffers = [{ name = "x", shape = ["N"] }, { name = "y", shape = ["N"], role = "out" }]
"""


@pytest.mark.cc
@pytest.mark.parametrize(
    ("reference", "code", "said"),
    [
        ("def reference(xp, x):\n    return 2 * x, 2 * abs(x)\n", 0, "scale: ok"),
        (
            "def reference(xp, **buffers):\n    return 3 * buffers['x'], 3 * abs(buffers['x'])\n",
            7,
            "WRONG: wrong answer",
        ),
        ("", 0, "the kernel's own first setting is held as truth"),
    ],
)
def test_a_kernel_of_another_kind_has_a_reference_of_its_own_or_its_first_setting(
    reference: str, code: int, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = Path("kernels/scale")
    folder.mkdir(parents=True)
    (folder / "kernel.c").write_text(SCALE, encoding="utf-8")
    name = "reference.py" if reference else "first"
    (folder / "kernel.toml").write_text(SCALE_TOML.replace("REFERENCE", name), encoding="utf-8")
    (folder / "reference.py").write_text(reference, encoding="utf-8")
    assert said in tell(["check", "scale"], capfd, code=code)


@pytest.mark.cc
def test_check_and_sessions_do_not_use_a_device_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    from cake_tui.backends.cpu.device import local_device
    from cake_tui.store.lock import take_device

    lock = take_device(local_device().uuid, "night", "somebody")
    assert lock is not None
    try:
        said = tell(["check", "matmul_bias_relu", "--backend", "cpu"], capfd, code=4)
    finally:
        lock.release()
    assert 'session "night" of somebody' in said


def test_without_a_compiler_check_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    said = tell(["check", "matmul_bias_relu", "--backend", "cpu"], capfd, code=3)
    assert said.count("\n") == 1
    assert "no-such-compiler" in said
    assert "install gcc or clang" in said
    assert "install gcc or clang" in tell(["check", "matmul_bias_relu"], capfd, code=3)


@pytest.mark.cc
def test_a_compiler_that_always_fails_ends_check_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    compiler = tmp_path / "oldcc"
    compiler.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "oldcc 1.0" && exit 0\necho "error: no" >&2\nexit 1\n')
    compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CC", str(compiler))
    said = tell(["check", "matmul_bias_relu", "--backend", "cpu"], capfd, code=3)
    assert "oldcc 1.0" in said
    doctor = json.loads(tell_any(["doctor", "--json"], capfd))
    (found,) = [one for one in doctor["found"] if one["subject"] == "compiler"]
    assert found["state"] == "missing"
    assert "oldcc 1.0" in found["text"]


def tell_any(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> str:
    main(arguments)
    return capfd.readouterr().out


# --- actions ------------------------------------------------------------------------------------------


def test_actions_lists_the_menu_for_people_and_programs(capfd: pytest.CaptureFixture[str]) -> None:
    text = tell(["actions"], capfd)
    assert "apply_register_block(m, n)" in text
    found = json.loads(tell(["actions", "--json"], capfd))
    assert found["target"] == "c"
    block = next(action for action in found["actions"] if action["name"] == "apply_register_block")
    assert [parameter["name"] for parameter in block["parameters"]] == ["m", "n"]
    assert block["usable"] is True
    gpu = json.loads(tell(["actions", "--target", "cuda", "--json"], capfd))
    refused = {action["name"]: action["refused"] for action in gpu["actions"]}
    assert "made for c" in refused["use_packed_panels"]


def test_actions_changes_a_file_of_the_working_folder(capfd: pytest.CaptureFixture[str]) -> None:
    tell(["actions", "--disable", "apply_unroll"], capfd)
    tell(["actions", "--values", "apply_tiling", "tile_size=32,64"], capfd)
    Path("more.toml").write_text(
        'name = "twice"\nlevel = "micro"\nsummary = "s"\nedits = [{ do = "unroll", factor = 2 }]\n', encoding="utf-8"
    )
    found = json.loads(tell(["actions", "--add", "more.toml", "--json"], capfd))
    by_name = {action["name"]: action for action in found["actions"]}
    assert found["file"] == "actions.toml"
    assert by_name["apply_unroll"]["enabled"] is False
    assert by_name["apply_tiling"]["parameters"][0]["values"] == [32, 64]
    assert by_name["twice"]["usable"] is True
    said = tell(["actions", "--values", "apply_tiling", "tile_sise=1"], capfd, code=2)
    assert 'did you mean "tile_size"?' in said


# --- doctor -------------------------------------------------------------------------------------------


@pytest.mark.cc
def test_doctor_says_what_is_there_and_what_to_do(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = json.loads(tell(["doctor", "--json"], capfd))
    assert found["usable"] is True
    subjects = {one["subject"]: one for one in found["found"]}
    assert {
        "cake-tui",
        "compiler",
        "processor",
        "memory",
        "limits",
        "load",
        "sessions",
        "cache",
        "device locks",
    } <= set(subjects)
    assert {"GPU", "numpy", "openai", "cupy", "ziglang", "terminal"} <= set(subjects)
    assert all(one["do"] for one in found["found"] if one["state"] == "missing")
    assert str(tmp_path / "locks") in subjects["device locks"]["text"]
    assert subjects["numpy"]["state"] == "ok"


def test_doctor_gives_nvmls_own_words(capfd: pytest.CaptureFixture[str]) -> None:
    import pynvml

    found = json.loads(tell_any(["doctor", "--json"], capfd))
    (gpu,) = [one for one in found["found"] if one["subject"] == "GPU"]
    with contextlib.suppress(pynvml.NVMLError):
        pynvml.nvmlInit()
        assert "driver" in gpu["text"]
        return
    with pytest.raises(pynvml.NVMLError) as error:
        pynvml.nvmlInit()
    assert str(error.value) in gpu["text"]
    assert gpu["do"]


def test_doctor_never_prints_a_key(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    shown = tell_any(["doctor"], capfd)
    assert "OPENAI_API_KEY is set" in shown
    assert "very-secret" not in shown


def test_doctor_names_a_folder_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("CAKE_TUI_LOCKS", str(tmp_path / "file"))
    found = json.loads(tell_any(["doctor", "--json"], capfd))
    (locks,) = [one for one in found["found"] if one["subject"] == "device locks"]
    assert locks["state"] == "missing"
    assert "CAKE_TUI_LOCKS" in locks["do"]


def test_doctor_gate_counts_false_accepts_of_equal_kernels(capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["doctor", "--gate", "--backend", "simulated", "--comparisons", "5", "--json"]
    found = json.loads(tell(arguments, capfd))
    result = found["result"]
    assert result["comparisons"] == 5
    assert sum(result[key] for key in ("accepted", "rejected", "undecided", "noisy")) == 5
    assert result["accepted"] <= found["allowed"]
    assert "--comparisons" in tell(["doctor", "--gate", "--comparisons", "0"], capfd, code=2)
