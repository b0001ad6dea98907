"""The standalone C file, compiled and run as somebody without cake-tui would."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from cake_tui.errors import FOUND_WRONG, UserError
from cake_tui.exporters._standalone import BEGIN, END
from cake_tui.exporters.c import PLUGIN
from tests.exporters.bundles import bundle

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


@pytest.mark.parametrize("structure", ["naive", "tiled", "packed", "split_k"])
def test_the_file_alone_compiles_checks_and_times_itself(structure: str, tmp_path: Path) -> None:
    program = compiled(PLUGIN.write(bundle(structure=structure)), tmp_path)
    code, found = figures(program)
    assert (code, found["passed"], found["threads"]) == (0, True, 2)
    assert 0 < float(str(found["max_abs_err"])) < 5e-5
    assert 0 < float(str(found["fastest_us"])) <= float(str(found["time_us"]))


@pytest.mark.parametrize("threads", ["1", "3", "8"])
def test_any_number_of_threads_gives_the_right_answer(threads: str, tmp_path: Path) -> None:
    code, found = figures(compiled(PLUGIN.write(bundle(structure="split_k")), tmp_path), threads)
    assert (code, found["passed"], found["threads"]) == (0, True, int(threads))


def test_gelu_is_checked_against_its_own_float64_form(tmp_path: Path) -> None:
    code, found = figures(compiled(PLUGIN.write(bundle(kernel="matmul_bias_gelu")), tmp_path))
    assert (code, found["passed"]) == (0, True)


def test_the_harness_finds_a_wrong_kernel(tmp_path: Path) -> None:
    made = bundle(structure="naive")
    text = PLUGIN.write(made)
    begin, end = text.index(BEGIN), text.index(END)
    kernel = text[begin:end]
    # The first multiplication of the inner loop becomes a sum: a mistake that no compiler finds.
    wrong = kernel.replace(" * ", " + ", 1) if " * " in kernel else kernel.replace("*", "+", 1)
    at = kernel.rfind("+=")
    wrong = kernel[:at] + "-=" + kernel[at + 2 :] if at > 0 else wrong
    code, found = figures(compiled(text[:begin] + wrong + text[end:], tmp_path))
    assert (code, found["passed"]) == (7, False)


def test_reading_gives_back_what_was_written() -> None:
    made = bundle()
    assert PLUGIN.read(PLUGIN.write(made)) == made


def test_a_changed_kernel_is_found_out_by_its_hash() -> None:
    text = PLUGIN.write(bundle())
    with pytest.raises(UserError, match="not the one it was exported with") as caught:
        PLUGIN.read(text.replace(END, "/* one comment more */\n" + END))
    assert caught.value.exit_code == FOUND_WRONG


@pytest.mark.parametrize(
    "text", ["", "int main(void) { return 0; }\n", "// cake-tui export 1 {not json}\n" + BEGIN + END, "\x00\x01\x02"]
)
def test_any_other_text_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UserError) as caught:
        PLUGIN.read(text)
    assert "\n" not in str(caught.value)


def test_people_read_figures_provenance_and_how_to_run_it() -> None:
    head = PLUGIN.write(bundle()).split(BEGIN)[0]
    for said in (
        "3.25 us",
        "46.2×",
        "numpy 2.4",
        "1.231×",
        "candidate 12",
        "use_packed_panels()",
        "cake-tui verify",
        "-lpthread",
    ):
        assert said in head


def test_simulated_figures_are_labelled() -> None:
    assert "SIMULATED" in PLUGIN.write(bundle(simulated=True))
    assert "SIMULATED" not in PLUGIN.write(bundle())
