"""A07: a check that cannot tell right from wrong for this data refuses the start, with the figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_tui.model import event as ev
from tests.cases.doubling import make_kernel
from tests.cases.shell import ROOT, Shell, events, variations

pytestmark = pytest.mark.cc
KERNEL = (ROOT / "kernels" / "matmul_bias_relu" / "kernel.toml").read_text(encoding="utf-8")
SMALL = ("--shape", "M=64,N=64,K=64")


def kernel(shell: Shell, *changes: tuple[str, str], more: str = "") -> None:
    """Write ``kernels/odd``: the shipped kernel with other inputs."""
    text = KERNEL
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    folder = shell.folder / "kernels" / "odd"
    folder.mkdir(parents=True)
    (folder / "kernel.toml").write_text(text + more, encoding="utf-8")


A = 'shape = ["M", "K"], fill = "normal"'
B = 'scale = "1/sqrt(K)"'
BIAS = '{ name = "bias", dtype = "f32", shape = ["N"], fill = "normal" }'
BLIND = {
    "outputs below the tolerance": (
        (A, f'{A}, scale = "0.001"'), (B, 'scale = "0.001"'), (BIAS, BIAS.replace("normal", "zeros"))
    ),
    "no output above zero": ((BIAS, BIAS.replace('"normal"', '"ones", scale = "-100"')),),
    "all outputs equal": ((A, A.replace("normal", "zeros")), (BIAS, BIAS.replace("normal", "ones"))),
    "tiny inputs": ((A, f'{A}, scale = "1e-20"'), (BIAS, BIAS.replace("normal", "zeros"))),
}  # fmt: skip


@pytest.mark.parametrize("how", variations(BLIND, 2))
def test_start_is_refused_with_the_figures(shell: Shell, how: str) -> None:
    kernel(shell, *BLIND[how])
    shape = ("--shape", "M=256,N=256,K=64") if how == "outputs below the tolerance" else SMALL
    said = [
        shell.apart("run", "odd", "--backend", "cpu", "--name", "a", *shape, *flags, code=2)[1]
        for flags in ((), ("--headless",))
    ]
    for err in said:
        assert err.count("\n") == 1
        for part in ("kernel odd", "cannot tell right from wrong", "max|y| = ", "non-zero elements ", "tolerance "):
            assert part in err
    assert list(shell.sessions.glob("*")) + list(shell.sessions.glob(".*")) == []
    assert shell.left_behind() == []


@pytest.mark.soak
@pytest.mark.parametrize("more", ["tolerance_abs = 1e6\ntolerance_units = 1e9\n", "tolerance_abs = 1e-12\n"])
def test_a_tolerance_that_lets_all_or_nothing_pass_is_refused(shell: Shell, more: str) -> None:
    kernel(shell, more=more)
    err = shell.apart("run", "odd", "--backend", "cpu", "--name", "a", *SMALL, code=2)[1]
    assert "cannot tell right from wrong" in err
    assert list(shell.sessions.glob("*")) == []


def test_the_usual_inputs_pass_before_the_first_agent_call(shell: Shell) -> None:
    kernel(shell)
    flags = ("--headless", "--candidates", "1", "--set", "guard_refusals=1")
    shell.apart("run", "odd", "--backend", "cpu", "--name", "a", "--shape", "M=33,N=31,K=17", *flags)
    (tested,) = events(shell.sessions / "a", ev.SelfTestEnded)
    names = " ".join(case[0] for case in tested.cases)
    for wrong in ("zero", "constant", "term", "swapped", "TF32"):
        assert wrong.lower() in names.lower()
    assert tested.seq < events(shell.sessions / "a", ev.Planned)[0].seq


def test_a_session_whose_kernel_became_blind_is_not_gone_on_with(shell: Shell, recorded: Path) -> None:
    """A resume of one that never passed its self-test is refused in the same way; one that did needs none."""
    before = (recorded / "journal.jsonl").read_bytes()
    shell.apart("resume", "a", "--headless")
    assert len(events(recorded, ev.SelfTestEnded)) == before.count(b'"kind":"SelfTestEnded"') == 1


# What a person's own reference may do wrong: its text, and what is said of it behind "reference.py of two".
OWN = {
    "it raises": ("def reference(xp, x):\n    raise ValueError('a [/dim]\\nb')\n", ", line 2: ValueError: a [/dim] b"),
    "a module that is not there": ("import nosuch\ndef reference(xp, x): return x, x\n", ", line 1: ModuleNotFound"),
    "it exits": ("import sys\ndef reference(xp, x): sys.exit(0)\n", ", line 2: SystemExit: 0"),
    "it ends its process": ("import os\ndef reference(xp, x): os._exit(0)\n", ": the process that computes it ended"),
    "it returns nothing": ("def reference(xp, x): pass\n", ": reference returns NoneType, must return (out, S)"),
    "no scale": ("def reference(xp, x): return 2 * x\n", ": reference returns ndarray, must return (out, S)"),
    "too few elements": ("def reference(xp, x): return x[:5], x\n", ": y is [5], must be [N] = [3000]"),
    "a number for a scale": ("def reference(xp, x): return x, 1.0\n", ": the scale of y is [], must be [N] = [3000]"),
}


@pytest.mark.parametrize("how", variations(OWN, 4))
def test_a_reference_of_ones_own_that_fails_is_named_with_its_line(shell: Shell, how: str) -> None:
    text, said = OWN[how]
    (make_kernel(shell, "") / "reference.py").write_text(text, encoding="utf-8")
    flags = ("--backend", "cpu", "--name", "a", "--headless")
    for words in (("check", "two", "--backend", "cpu"), ("run", "two", *flags)):
        err = shell.apart(*words, code=2)[1]
        assert err.count("\n") == 1
        assert err.startswith(f"reference.py of two{said}")
    assert list(shell.sessions.glob("*")) == []
    assert shell.left_behind() == []


def test_a_reference_without_numbers_is_refused(shell: Shell) -> None:
    (make_kernel(shell, "") / "reference.py").write_text("def reference(xp, x): return x / 0, x\n", encoding="utf-8")
    err = shell.apart("run", "two", "--backend", "cpu", "--name", "a", "--headless", code=2)[1]
    assert err.count("\n") == 1
    assert "kernel two: its reference makes 3000 of 3000 elements of y infinite or no number" in err
