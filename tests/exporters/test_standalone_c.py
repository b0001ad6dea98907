"""The standalone C file, compiled and run as somebody without cake-tui would."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from cake_tui.errors import FOUND_WRONG, UserError
from cake_tui.exporters import Bundle
from cake_tui.exporters._standalone import BEGIN, END
from cake_tui.exporters.c import PLUGIN
from cake_tui.model.problem import BufferSpec, Problem, Shape, Template
from cake_tui.model.schedule import Knob
from tests.exporters.bundles import bundle, cpu, structures

pytestmark = pytest.mark.cc


def compiled(text: str, folder: Path, *extra: str) -> Path:
    source, program = folder / "export.c", folder / "bench"
    source.write_text(text, encoding="utf-8")
    compiler = shutil.which("cc") or "gcc"
    options = bundle().lowered.options
    done = subprocess.run(
        [compiler, *options, "-Wall", "-Wextra", *extra, str(source), "-o", str(program), "-lpthread", "-lm"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return program


def figures(program: Path, *words: str) -> tuple[int, dict[str, object]]:
    done = subprocess.run([str(program), *words], capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize(
    ("time_us", "changes", "told"),
    [
        (0.001, {}, True), (1e6, {}, False), (0.001, {"simulated": True}, False), (0.001, {"pair_noise": 1e7}, False),
    ],
)  # fmt: skip
def test_the_harness_tells_of_a_time_far_over_the_stated_one(
    time_us: float | None, changes: dict[str, object], told: bool, tmp_path: Path
) -> None:
    program = compiled(PLUGIN.write(msgspec.structs.replace(bundle(), time_us=time_us, **changes)), tmp_path, "-O0")
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0
    found = json.loads(done.stdout)
    words = f" times the stated 0.001 us; the fastest run took {float(found['fastest_us']):.4g} us\n"
    assert done.stderr.endswith(words) if told else done.stderr == ""


KERNELS = ("matmul_bias_relu", "row_sum", "bias_gelu", "matmul_bias_relu_template")


@pytest.mark.parametrize(("kernel", "structure"), [pair for kernel in KERNELS for pair in structures(kernel, cpu())])
def test_the_file_alone_compiles_checks_and_times_itself(kernel: str, structure: str, tmp_path: Path) -> None:
    program = compiled(PLUGIN.write(bundle(kernel, structure)), tmp_path)
    code, found = figures(program)
    assert (code, found["passed"], found["threads"]) == (0, True, 2)
    assert 0 < float(str(found["max_abs_err"])) < 5e-5
    assert 0 < float(str(found["fastest_us"])) <= float(str(found["time_us"]))


@pytest.mark.parametrize(
    ("kernel", "structure", "knobs"),
    [
        ("matmul_bias_relu_template", "template", {"BM": 24, "BN": 96, "MR": 4, "NV": 3, "VL": 8}),
        ("matmul_bias_gelu", "tiled", {"block_k": 16}),
        ("row_sum", "simd_rows", {"thread_n": 2}),
    ],
)
def test_other_knobs_than_the_first_are_exported(
    kernel: str, structure: str, knobs: dict[str, int], tmp_path: Path
) -> None:
    made = bundle(kernel, structure, knobs=knobs)
    assert all(f"{name}={value}" in made.schedule for name, value in knobs.items())
    assert PLUGIN.read(PLUGIN.write(made)) == made
    code, found = figures(compiled(PLUGIN.write(made), tmp_path))
    assert (code, found["passed"]) == (0, True)


def test_any_number_of_threads_gives_the_right_answer(tmp_path: Path) -> None:
    program = compiled(PLUGIN.write(bundle(structure="split_k")), tmp_path)
    for threads in (1, 3, 8):
        code, found = figures(program, str(threads))
        assert (code, found["passed"], found["threads"]) == (0, True, threads)


def test_gelu_is_checked_against_its_own_float64_form(tmp_path: Path) -> None:
    code, found = figures(compiled(PLUGIN.write(bundle(kernel="matmul_bias_gelu")), tmp_path))
    assert (code, found["passed"]) == (0, True)


# --- kernels that are wrong, or only seem right ----------------------------------------------------------------

HEAD = """\
#include <math.h>
#include <string.h>
void kernel(const int *task, const float *x, float *y SIZES) {
  (void)task;
"""
RIGHT = """\
  for (int r = 0; r < R; ++r) {
    float sum = 0;
    for (int c = 0; c < C; ++c) sum += x[r * C + c];
    y[r] = sum;
  }
"""
KEPT = "  static float kept[R];\n  static int calls;\n"
KEEPS = "  memcpy(kept, y, sizeof kept);\n"
GIVES = "{ memcpy(y, kept, sizeof kept); return; }\n"
CHEATS = {
    "a term less": RIGHT.replace("c < C", "c < C - 1"),
    "half precision": RIGHT.replace("sum += x[r * C + c]", "sum += (float)(_Float16)x[r * C + c]"),
    "the output of an earlier call": f"{KEPT}  if (calls++ >= 2) {GIVES}{RIGHT}{KEEPS}",
    "what it computed for this address": f"{KEPT}  static const float *seen;\n  if (seen == x && ++calls > 2) {GIVES}"
    f"  seen = x;\n{RIGHT}{KEEPS}",
    "inputs made zero": f"  memset((void *)x, 0, sizeof(float) * R * C);\n{RIGHT}",
    "right when checked, idle when timed": f"  static int calls;\n  if (++calls > 3) return;\n{RIGHT}",
}


def hand_made(body: str, **changes: object) -> Bundle:
    """Sums of rows by a kernel of somebody's own, on one thread."""
    knobs = tuple(Knob(name, (1, 2), 1) for name in ("rows", "value", "at", "worst"))  # words of the harness
    template = Template(f"{HEAD}{body}}}\n", "c", "kernel", knobs)
    shape = Shape((("R", 9), ("C", 300)))
    wanted = msgspec.structs.replace(bundle("row_sum", "naive").problem, template=template, shapes=(shape,), **changes)
    return bundle("row_sum", "template", wanted=wanted)


def test_a_right_kernel_of_ones_own_passes(tmp_path: Path) -> None:
    code, found = figures(compiled(PLUGIN.write(hand_made(RIGHT)), tmp_path, "-O0"), "1")
    assert (code, found["passed"]) == (0, True)


@pytest.mark.parametrize("body", CHEATS.values(), ids=CHEATS)
def test_a_kernel_that_only_seems_right_is_found_out(body: str, tmp_path: Path) -> None:
    code, found = figures(compiled(PLUGIN.write(hand_made(body)), tmp_path, "-O0"), "1")
    assert (code, found["passed"]) == (7, False)


@pytest.mark.parametrize("structure", ["tiled", "vectorized"])
def test_the_harness_finds_a_wrong_product_and_a_wrong_map(structure: str, tmp_path: Path) -> None:
    text = PLUGIN.write(bundle("bias_gelu" if structure == "vectorized" else "matmul_bias_relu", structure))
    begin, end = text.index(BEGIN), text.index(END)
    kernel = text[begin:end]
    wrong = kernel.replace("0.5f", "0.5001f") if structure == "vectorized" else kernel.replace("+=", "-=", 1)
    assert wrong != kernel
    code, found = figures(compiled(text[:begin] + wrong + text[end:], tmp_path, "-O0"))
    assert (code, found["passed"]) == (7, False)


def test_every_type_of_buffer_is_filled_read_and_compared(tmp_path: Path) -> None:
    """Also one that is read and written: the harness compares with what it was before."""
    source = (
        "void kernel(const int *task, const int *i, const unsigned char *b, const _Float16 *h, double *y SIZES) {\n"
        "  (void)task;\n  for (int n = 0; n < N; ++n) y[n] = y[n] + i[n] - b[n] + (double)h[n];\n}\n"
    )
    specs = [("i", "i32", "in"), ("b", "u8", "in"), ("h", "f16", "in"), ("y", "f64", "inout")]
    wanted = Problem(
        kernel="mixed", family="elementwise", value="y[n] + i[n] - b[n] + h[n]", shapes=(Shape((("N", 77),)),),
        buffers=tuple(BufferSpec(name, dtype, ("N",), role=role) for name, dtype, role in specs),  # type: ignore[arg-type]
        template=Template(source, "c", "kernel", ()),
    )  # fmt: skip
    made = bundle("mixed", "template", wanted=wanted)
    code, found = figures(compiled(PLUGIN.write(made), tmp_path, "-O0"), "1")
    assert (code, found["passed"]) == (0, True)
    off = made.lowered.source.replace("- b[n]", "+ b[n]")
    wrong = msgspec.structs.replace(made, lowered=msgspec.structs.replace(made.lowered, source=off))
    code, found = figures(compiled(PLUGIN.write(wrong), tmp_path, "-O0"), "1")
    assert (code, found["passed"]) == (7, False)


def test_what_only_python_says_is_timed_and_not_judged(tmp_path: Path) -> None:
    text = "def reference(xp, x):\n    return x.sum(1), abs(x).sum(1)\n"
    code, found = figures(compiled(PLUGIN.write(hand_made(RIGHT, reference=text)), tmp_path, "-O0"), "1")
    assert (code, found["passed"], found["max_abs_err"]) == (0, None, None)
    assert float(str(found["time_us"])) > 0
    zeroed = hand_made(CHEATS["inputs made zero"], reference=text)
    assert figures(compiled(PLUGIN.write(zeroed), tmp_path, "-O0"), "1")[0] == 7


# --- what the file says of itself ------------------------------------------------------------------------------


def test_reading_gives_back_what_was_written() -> None:
    made = bundle()
    assert PLUGIN.read(PLUGIN.write(made)) == made


def test_a_changed_kernel_is_found_out_by_its_hash() -> None:
    text = PLUGIN.write(bundle())
    with pytest.raises(UserError, match="not the one it was exported with") as caught:
        PLUGIN.read(text.replace(END, "/* one comment more */\n" + END))
    assert caught.value.exit_code == FOUND_WRONG


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("// measured: 3.250 us", "// measured: 0.250 us"),
        ('"time_us": 3.25', '"time_us": 0.25'),
        ("return passed == 0 ? 7 : 0;", "return 0;"),
        ("#define CAKE_TOLERANCE", "#define CAKE_TOLERANCE 1.0 //"),
        ("// end of provenance\n", "// end of provenance\n#define cake_check(integers, worst) 1\n"),
    ],
)
def test_a_change_around_the_kernel_is_found_out(old: str, new: str) -> None:
    text = PLUGIN.write(bundle())
    assert text.count(old) == 1
    with pytest.raises(UserError, match="changed since it was exported") as caught:
        PLUGIN.read(text.replace(old, new))
    assert caught.value.exit_code == FOUND_WRONG


def test_no_comment_is_wider_than_a_screen_but_the_command_to_paste() -> None:
    step = "12: use_packed_panels() then " + "a_step_with_a_long_name(1, 2, 3), " * 20 + "back\\slash"
    made = bundle(lineage=(step, "two\nlines"))
    head = PLUGIN.write(made).split(BEGIN)[0]
    assert all(line.startswith("//") for line in head.splitlines() if line)
    assert all(len(line) <= 120 or line.startswith("// run: ") for line in head.splitlines())
    assert not any(line.endswith("\\") for line in head.splitlines())
    assert PLUGIN.read(PLUGIN.write(made)) == made


def test_a_file_of_the_first_form_is_still_read() -> None:
    made = bundle()
    text = PLUGIN.write(made)
    begin, behind = text.index("// cake-tui export 2"), text.index(BEGIN)
    mark = "// cake-tui export 1 " + json.dumps(made.provenance, sort_keys=True, ensure_ascii=True)
    assert PLUGIN.read(f"{text[:begin]}{mark}\n\n{text[behind:]}") == made


@pytest.mark.parametrize(
    "text",
    [
        "",
        "int main(void) { return 0; }\n",
        "// cake-tui export 1 {not json}\n" + BEGIN + END,
        "\x00\x01\x02",
        "// cake-tui export 2\n// []\n// end of provenance\n",
        "// cake-tui export 2\n// {}\n",
    ],
)
def test_any_other_text_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UserError) as caught:
        PLUGIN.read(text)
    assert "\n" not in str(caught.value)


def test_people_read_figures_provenance_and_how_to_run_it() -> None:
    made = bundle()
    head = PLUGIN.write(made).split(BEGIN)[0]
    for said in (
        "3.25 us",
        "100×",
        "numpy 2.4",
        "1.231×",
        "candidate 12",
        "use_packed_panels()",
        "cake-tui verify",
        f"// kernel id {made.lowered.sha256[:12]}\n",
        "-lpthread",
    ):
        assert said in head


def test_simulated_figures_are_labelled() -> None:
    assert "SIMULATED" in PLUGIN.write(bundle(simulated=True))
    assert "SIMULATED" not in PLUGIN.write(bundle())
