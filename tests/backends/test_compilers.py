"""The device, the compiler and the facts that a build leaves: read from this machine and from odd compilers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from cake_tui.backends.cpu import PLUGIN
from cake_tui.backends.cpu.compilers import architecture_options
from cake_tui.backends.cpu.device import physical_cores
from cake_tui.backends.cpu.facts import read_facts
from cake_tui.errors import ENVIRONMENT, UserError
from cake_tui.executors.local import Local
from cake_tui.model.jobs import BuildJob, Built
from tests.backends.contraction_kernels import WRONG, lowered_of, source_of

pytestmark = pytest.mark.cc


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """``compiler(script)`` puts a shell script in the compiler's place."""

    def install(script: str) -> None:
        path = tmp_path / "odd-cc"
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)
        monkeypatch.setenv("CC", str(path))

    return install


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    with Local("cpu", tmp_path_factory.mktemp("store"), PLUGIN.devices()[0]) as made:
        yield made


def test_device_is_this_machine() -> None:
    [device] = PLUGIN.devices()
    assert (device.kind, device.target) == ("cpu", "c")
    assert device.uuid.startswith("cpu:")
    assert len(device.uuid) > len("cpu:")
    assert 1 <= device.cores <= len(os.sched_getaffinity(0))
    assert device.cores == physical_cores()
    assert device.line_bytes in (32, 64, 128, 256)
    assert device.l1_bytes <= device.l2_bytes or not device.l2_bytes
    assert PLUGIN.devices() == (device,)


def test_affinity_limits_the_cores() -> None:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert physical_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_probe_names_compiler_and_version() -> None:
    found = PLUGIN.probe(PLUGIN.devices()[0])
    assert found.command
    assert any(character.isdigit() for character in found.version)


def test_no_compiler_at_all_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"no C compiler.*install gcc or clang.*ziglang") as caught:
        PLUGIN.devices()
    assert caught.value.exit_code == ENVIRONMENT
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("words", ["/no/such/cc", "cc'", "   "])
def test_compiler_variable_that_names_no_command_is_named(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    monkeypatch.setenv("CC", words)
    with pytest.raises(UserError, match="CC=") as caught:
        PLUGIN.devices()
    assert caught.value.exit_code == ENVIRONMENT


def test_compiler_that_lacks_the_architecture_names_the_highest_it_has(compiler: Callable[[str], None]) -> None:
    compiler(
        'case "$*" in *--version*) echo "odd 1.2.3";; *x86-64-v[34]*) echo "error: bad value for -march" >&2; exit 1;; '
        '*) exec cc "$@";; esac'
    )
    device = msgspec.structs.replace(PLUGIN.devices()[0], arch="x86-64-v4")
    with pytest.raises(UserError, match=r"odd 1\.2\.3.*x86-64-v4.*bad value.*highest it makes is x86-64-v2") as caught:
        PLUGIN.probe(device)
    assert caught.value.exit_code == ENVIRONMENT


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ('case "$*" in *--version*) echo odd 1;; *) echo "fatal error: out of disk" >&2; exit 4;; esac', "out of disk"),
        ("echo broken >&2; exit 3", "--version ended with 3: broken"),
        ("exit 0", "--version ended with 0"),
    ],
    ids=["always-fails", "no-version", "silent"],
)
def test_broken_compiler_is_found_before_anything_is_tuned(
    compiler: Callable[[str], None], script: str, words: str
) -> None:
    compiler(script)
    with pytest.raises(UserError, match=words) as caught:
        PLUGIN.probe(PLUGIN.devices()[0])
    assert caught.value.exit_code == ENVIRONMENT


def test_architecture_is_spelt_as_the_compiler_spells_it() -> None:
    assert architecture_options(("python", "-m", "ziglang", "cc"), "x86-64-v4") == ("-mcpu=x86_64_v4",)
    assert architecture_options(("gcc",), "x86-64-v3")[0] == "-march=x86-64-v3"


def built(executor: Local, source: str, *options: str) -> Built:
    [(_, reply)] = list(executor.build([BuildJob(lowered_of(source, options=options or ("-O3",)))]))
    assert isinstance(reply, Built)
    return reply


VECTOR = """
typedef float vector __attribute__((vector_size(4 * LANES)));
void entry(const int task[3], const float *a, const float *b, const float *bias, float *y, int M, int N, int K) {
    vector sum = {0}, v;
    for (int k = 0; k < K; k++) {
        __builtin_memcpy(&v, b + k * N, sizeof v);
        sum += v * a[k];
    }
    __builtin_memcpy(y, &sum, sizeof sum);
}
"""


@pytest.mark.skipif(PLUGIN.devices()[0].vector_bytes < 32, reason="needs AVX2 or wider")
def test_vector_code_and_scalar_code_are_told_apart(executor: Local) -> None:
    lanes = PLUGIN.devices()[0].vector_bytes // 4
    wide = built(executor, f"#define LANES {lanes}\n{VECTOR}").facts
    assert wide.vector_bytes == PLUGIN.devices()[0].vector_bytes
    assert wide.vector_share is not None
    assert wide.vector_share > 0.9
    assert wide.fma_instructions
    scalar = built(executor, source_of(WRONG / "honest" / "row_by_row.c"), "-O2", "-fno-tree-vectorize").facts
    assert scalar.vector_share == 0.0
    assert scalar.fma_instructions is not None


@pytest.mark.skipif(PLUGIN.devices()[0].vector_registers == 0, reason="register count unknown")
def test_more_accumulators_than_registers_spill(executor: Local) -> None:
    lanes = PLUGIN.devices()[0].vector_bytes // 4
    many = 2 * PLUGIN.devices()[0].vector_registers
    head = f"#define LANES {lanes}\ntypedef float vector __attribute__((vector_size(4 * LANES)));\n"
    signature = "void entry(const int task[3], vector *a, vector *b, vector *bias, vector *y, int M, int N, int K)"
    sums = "".join(f"vector s{i} = y[{i}];" for i in range(many))
    adds = "".join(f"s{i} += a[k] * b[k + {i}];" for i in range(many))
    outs = "".join(f"y[{i}] = s{i};" for i in range(many))
    spilling = built(
        executor, f"{head}{signature} {{ {sums} for (int k = 0; k < K; k++) {{ {adds} }} {outs} }}\n"
    ).facts
    fitting = built(executor, f"#define LANES {lanes}\n{VECTOR}").facts
    assert spilling.spill_stores
    assert spilling.spill_loads
    assert (fitting.spill_stores, fitting.spill_loads) == (0, 0)


def test_loops_that_stay_scalar_are_named_in_the_compilers_words(executor: Local) -> None:
    if "clang" in PLUGIN.probe(PLUGIN.devices()[0]).version.lower():
        pytest.skip("clang words its report otherwise")
    chained = source_of(WRONG / "honest" / "row_by_row.c")
    facts = built(executor, chained, "-O3").facts
    assert facts.missed_loops
    assert all(loop.startswith("line ") for loop in facts.missed_loops)


def test_facts_of_files_that_are_none_are_unknown(tmp_path: Path) -> None:
    for content in (b"", b"\x7fELF", b"\x7fELF\x02\x01" + b"\xff" * 80, os.urandom(500)):
        binary = tmp_path / "kernel.so"
        binary.write_bytes(content)
        facts = read_facts(binary, "", "cc 1")
        assert facts.code_bytes is None
        assert facts.vector_share is None
        assert facts.missed_loops == ()
