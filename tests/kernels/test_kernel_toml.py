"""kernel.toml: what is read, and every mistake as one line with file, line, key, found, allowed and nearest."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_tui import kernels
from cake_tui.backends._inputs import DTYPES as SERVED
from cake_tui.errors import UserError
from cake_tui.kernels.source import DTYPES
from cake_tui.model.problem import Shape

ROOT = Path(__file__).parents[2]
SHIPPED = (ROOT / "kernels/matmul_bias_relu/kernel.toml").read_text(encoding="utf-8")
TEMPLATE = (ROOT / "kernels/matmul_bias_relu_template/kernel.toml").read_text(encoding="utf-8")
SOURCE = "void kernel(const int task[3], const float *a, const float *b, const float *bias, float *y SIZES) {}\n"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str, name: str = "mine", **files: str) -> Path:
    folder = Path("kernels") / name
    folder.mkdir(parents=True)
    (folder / "kernel.toml").write_text(text, encoding="utf-8")
    for file, content in files.items():
        (folder / file.replace("_", ".")).write_text(content, encoding="utf-8")
    return folder


def mistakes(text: str, **files: str) -> list[str]:
    write(text, **files)
    with pytest.raises(UserError) as found:
        kernels.load("mine", target="c")
    assert found.value.exit_code == 2
    lines = str(found.value).split("\n")
    assert all(line.startswith("kernels/mine/kernel.toml:") for line in lines), lines
    return lines


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


# --- what is read -------------------------------------------------------------------------------------


def test_the_shipped_kernel_has_its_default_shape_per_target() -> None:
    cpu, gpu = kernels.load("matmul_bias_relu", target="c"), kernels.load("matmul_bias_relu", target="cuda")
    assert [shape.text for shape in cpu.shapes] == ["M=512,N=512,K=512"]
    assert [shape.text for shape in gpu.shapes] == ["M=1024,N=1024,K=1024"]
    assert (cpu.family, cpu.value, cpu.ranking, cpu.cache, cpu.accumulation) == (
        "contraction", "relu(acc + bias[n])", "last", "warm", "blocked",
    )  # fmt: skip
    assert [(b.name, b.shape, b.role) for b in cpu.buffers] == [
        ("a", ("M", "K"), "in"), ("b", ("K", "N"), "in"), ("bias", ("N",), "in"), ("y", ("M", "N"), "out"),
    ]  # fmt: skip
    assert (cpu.peers, gpu.peers) == (("numpy",), ("cublas", "torch"))
    assert (cpu.tolerance_abs, cpu.tolerance_units, cpu.minimum_work) == (5e-5, 192.0, "2*M*N*K")


def test_the_gelu_kernel_says_which_gelu() -> None:
    kernel = kernels.read("matmul_bias_gelu", target="c")
    assert "exact" in kernel.title
    assert "erf" in kernel.title
    assert kernel.problem.value == "gelu_erf(acc + bias[n])"


def test_a_template_takes_buffers_and_shapes_of_the_kernel_it_must_equal() -> None:
    problem = kernels.load("matmul_bias_relu_template", target="c")
    like = kernels.load("matmul_bias_relu", target="c")
    assert (problem.buffers, problem.shapes, problem.value, problem.family) == (
        like.buffers, like.shapes, like.value, like.family,
    )  # fmt: skip
    assert problem.template is not None
    assert problem.template.grid == ("ceil(N / BN)", "ceil(M / BM)")
    assert problem.template.knobs[0].default == problem.template.knobs[0].values[0]
    with pytest.raises(UserError, match=r"its file is for c, and this device takes cuda"):
        kernels.load("matmul_bias_relu_template", target="cuda")


def test_every_dtype_of_a_buffer_can_be_checked_against_a_reference() -> None:
    assert set(DTYPES) == set(SERVED)


def test_a_working_folders_kernel_comes_before_the_packaged_one() -> None:
    write(SHIPPED.replace("512", "64"), name="matmul_bias_relu")
    assert kernels.load("matmul_bias_relu", target="c").shapes == (Shape((("M", 64), ("N", 64), ("K", 64))),)
    assert kernels.find("matmul_bias_relu") == Path("kernels/matmul_bias_relu")


def test_a_title_in_any_script_is_read_whatever_the_locale() -> None:
    write(SHIPPED.replace("relu(A·B + bias)", "矩阵 – µ-Kern für Übung 🙂"))
    assert kernels.read("mine", target="c").title == "矩阵 – µ-Kern für Übung 🙂"


def test_a_reference_of_its_own_is_kept_as_text() -> None:
    text = "def reference(xp, a, b, bias):\n    return xp.maximum(a @ b + bias, 0), abs(a) @ abs(b) + abs(bias)\n"
    write(SHIPPED + 'reference = "reference.py"\n', reference_py=text)
    assert kernels.load("mine", target="c").reference == text


# --- mistakes -----------------------------------------------------------------------------------------

ONE = [
    ('family = "contraction"', 'famly = "contraction"', ("famly: unknown key; allowed:", 'did you mean "family"?')),
    ('"contraction"', '"contractoin"', ('family: found "contractoin", allowed: contraction', "did you mean")),
    ('ranking = "last"', 'ranking = "lst"', ('found "lst", allowed: last, mean, geom (did you mean "last"?)',)),
    ('cache = "warm"', "cache = true", ("cache: found true, allowed: warm, cold",)),
    ('accumulation = "blocked"', 'accumulation = "block"', ('did you mean "blocked"?',)),
    ('precision = "fp32"', 'precision = "tf32"', ("allowed: fp32, strict",)),
    ('"2*M*N*K"', '"2*M*N*L"', ("minimum_work", "unknown name L; allowed: M, N, K")),
    ('"2*M*N*K"', '"2*M*"', ("minimum_work", "found the end of the line")),
    ('"2*M*N*K"', '"-M"', ("minimum_work", "at least 0")),
    ('"2*M*N*K"', '"1/(M - M)"', ("minimum_work",)),
    ('"2*M*N*K"', "3", ("minimum_work: found 3, allowed: a text in quotes",)),
    ('"numpy", ', '"nunpy", ', ('peers[1]: found "nunpy"', 'did you mean "numpy"?')),
    ('"relu(acc + bias[n])"', '"relu(acc + bais[n])"', ("unknown buffer bais; allowed: a, b, bias",)),
    ('"relu(acc + bias[n])"', '"relu(acc + bias[j])"', ("unknown name j; allowed: acc, m, n",)),
    ('"relu(acc + bias[n])"', '"relu(acc + bias[m, n])"', ("bias has 1 axes, not 2",)),
    ('"relu(acc + bias[n])"', '"relu(acc + bias[m])"', ("found bias[m]; allowed: bias[n], at its own axes",)),
    ('"relu(acc + bias[n])"', '"relu(acc + bias[n + 1])"', ("found bias[n + 1]; allowed: bias[n]",)),
    ('"relu(acc + bias[n])"', '"relu(acc + bias[0])"', ("found bias[0]; allowed: bias[n]",)),
    ('"relu(acc + bias[n])"', '"relu(acc + bias)"', ("found bias; allowed: bias[n]",)),
    ('"relu(acc + bias[n])"', '"relu(acc + a[m, n])"', ("found a[m, n]; k is no axis here",)),
    ('"relu(acc + bias[n])"', '"acc + n"', ("n is an index; it stands inside of [ ] only",)),
    ('"2*M*N*K"', '"1e308*M"', ("minimum_work", "is inf", "finite")),
    ('"relu(acc + bias[n])"', '"rleu(acc)"', ("the function rleu", "relu")),
    ('"relu(acc + bias[n])"', "\"__import__('os')\"", ("value:",)),
    ('shape = ["N"]', 'shape = ["P"]', ("buffers[3].shape[1]", "unknown name P; allowed: M, N, K")),
    ('shape = ["N"]', "shape = []", ("buffers[3].shape", "at least one extent")),
    ('name = "bias", dtype = "f32"', 'name = "bias", dtype = "f31"', ("buffers[3].dtype", 'did you mean "f32"?')),
    ('name = "bias", dtype = "f32"', 'name = "bias", dtype = "bf16"', ("allowed: f32, f64, f16, i32",)),
    ('name = "bias", dtype', 'nam = "bias", dtype', ("buffers[3].nam: unknown key",)),
    ('name = "bias"', 'name = "a"', ('a second buffer "a"',)),
    ('name = "bias"', 'name = "Bias!"', ('found "Bias!"',)),
    ('scale = "1/sqrt(K)"', 'scale = "1/sqr(K)"', ("buffers[2].scale", "the function sqr")),
    ('fill = "normal", scale', 'fill = "gauss", scale', ("buffers[2].fill", "allowed: normal, uniform")),
    ('role = "out"', 'role = "output"', ("buffers[4].role", "allowed: in, out, inout")),
    ('role = "out"', 'role = "in"', ('no buffer has role = "out"',)),
    ("{ M = 512, N = 512, K = 512 }", "{ M = 512, N = 0, K = 512 }", ("shapes.c[1].N: found 0, allowed: a",)),
    ("{ M = 512, N = 512, K = 512 }", "{ M = 512, N = 2.5, K = 512 }", ("found 2.5",)),
    ("{ M = 512, N = 512, K = 512 }", "{ M = 512, N = true, K = 512 }", ("found true",)),
    ("{ M = 512, N = 512, K = 512 }", "{ M = 512, K = 512 }", ("unknown name N",)),
    ("{ M = 512, N = 512, K = 512 }", "{ M = 99999, N = 99999, K = 2 }", ("buffer y has 9999800001 elements",)),
    ("shapes.c =", "shapes.cpu =", ("shapes.cpu: unknown key; allowed: c, cuda",)),
    ("shapes.c = [{", "shapes.c = [[], {", ("shapes.c[1]: found [], allowed: a table",)),
    ('["K", "N"], fill', '["N", "K"], fill', ("a contraction is a[M, K], b[K, N]",)),
    ('name = "a", dtype = "f32"', 'name = "a", dtype = "f64"', ("found f32 and f64",)),
    ("# y = relu", 'tolerance_abs = -1\n# y = relu', ("tolerance_abs: found -1, allowed: a number from",)),
    ("# y = relu", 'tolerance_abs = nan\n# y = relu', ("tolerance_abs: found nan",)),
    ("# y = relu", 'tolerance_abs = "1e-4"\n# y = relu', ('found "1e-4", allowed: a number',)),
    ("# y = relu", 'fill = "normal"\n# y = relu', ("it belongs in a buffer",)),
    ("# y = relu", 'knobs = {}\n# y = relu', ('it belongs in a kernel with "template"',)),
    ("# y = relu", 'reference = "first"\n# y = relu', ('"first" is for templates',)),
    ("# y = relu", 'reference = "matmul_bias"\n# y = relu', ("no kernel", 'did you mean "matmul_bias_relu"?')),
    ("# y = relu", 'reference = "../x.py"\n# y = relu', ("a file of this folder",)),
    ("# y = relu", 'reference = "nothing.py"\n# y = relu', ("cannot be read: no such file",)),
    ("# y = relu", 'targets = ["gpu"]\n# y = relu', ('found "gpu", allowed: c, cuda',)),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "said"), ONE)
def test_one_mistake_is_one_line(old: str, new: str, said: tuple[str, ...]) -> None:
    text = SHIPPED.replace(old, new, 1)
    assert text != SHIPPED
    found = mistakes(text)
    for words in said:
        assert any(words in line for line in found), found


def test_the_line_is_that_of_the_key() -> None:
    text = SHIPPED.replace('fill = "normal", scale', 'fill = "gauss", scale').replace('"last"', '"lst"')
    found = mistakes(text)
    lines = [line_of(text, '"lst"'), line_of(text, '"gauss"')]
    assert [int(line.split(":")[1]) for line in found] == lines


PYTHON = [
    ("x = (", "reference.py:1"),
    ("x = 1\n", "no function reference(xp, **buffers)"),
    ("def reference(xp):\n  return (\n", "reference.py:2"),
    ("class reference: pass", "no function reference"),
]


@pytest.mark.parametrize(("text", "said"), PYTHON)
def test_a_reference_that_is_no_python_is_said_with_its_line(text: str, said: str) -> None:
    (found,) = mistakes(SHIPPED + 'reference = "reference.py"\n', reference_py=text)
    assert said in found


TEMPLATE_ONE = [
    ("BM = [8,", "BM = [8.5,", ("knobs.BM[1]: found 8.5",)),
    ("BM = [8, 24, 48, 96, 192]", "BM = 8", ("knobs.BM: found 8, allowed: an array",)),
    ("BM = [8, 24, 48, 96, 192]", 'BM = ["8); system("]', ("as a macro takes them",)),
    ("BM = [8, 24, 48, 96, 192]", "BM = { values = [8], default = 9 }", ("knobs.BM.default: found 9, allowed: 8",)),
    ("MR = [1,", "M = [1,", ("a size or a buffer has this name", "unknown name MR")),
    ("MR = [1,", '"M-R" = [1,', ("a knob becomes a macro",)),
    ('"BM % MR == 0"', '"BMM % MR == 0"', ("require[1]", "unknown name BMM", 'did you mean "BM"?')),
    ('"BM % MR == 0"', '"BM % MR"', ("is no condition",)),
    ('"BM % MR == 0"', '"BM > 100"', ('"BM > 100" does not hold for the first values: BM = 8',)),
    ('"ceil(N / BN)", ', '"N / 7", ', ("launch.grid[1]", "allowed: a whole number, at least 1")),
    ('"ceil(N / BN)", ', "0, ", ("launch.grid[1]", "at least 1")),
    ('["ceil(N / BN)", "ceil(M / BM)"]', "[]", ("one to three expressions",)),
    ("grid = [", "gird = [", ("launch.gird: unknown key; allowed: grid, block, smem_bytes",)),
    ('template = "kernel.c"', 'template = "kernel.py"', ('a file of this folder: "kernel.c" or "kernel.cu"',)),
    ('template = "kernel.c"', 'template = "../kernel.c"', ("a file of this folder",)),
    ('template = "kernel.c"', 'template = "other.c"', ("no such file",)),
    ('entry = "kernel"', 'entry = "matmul"', ('kernel.c has no function "matmul"',)),
    ('entry = "kernel"', 'entry = "a b"', ("the name of a function",)),
    ('reference = "matmul_bias_relu"', 'reference = "matmul_bias_rel"', ('did you mean "matmul_bias_relu"?',)),
    ('reference = "matmul_bias_relu"', 'title2 = "x"', ("reference", "the key \"shapes\" is missing")),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "said"), TEMPLATE_ONE)
def test_one_mistake_in_a_templates_file_is_one_line(old: str, new: str, said: tuple[str, ...]) -> None:
    text = TEMPLATE.replace(old, new, 1)
    assert text != TEMPLATE
    found = mistakes(text, kernel_c=SOURCE)
    for words in said:
        assert any(words in line for line in found), found


def test_a_kernel_file_that_is_no_text_is_refused() -> None:
    folder = write(TEMPLATE)
    (folder / "kernel.c").write_bytes(b"void kernel(\xff\xfe")
    with pytest.raises(UserError, match="not UTF-8"):
        kernels.load("mine", target="c")


def test_references_do_not_go_in_circles() -> None:
    write(TEMPLATE.replace("matmul_bias_relu", "mine"), kernel_c=SOURCE)
    with pytest.raises(UserError, match="names none itself"):
        kernels.load("mine", target="c")


# --- names and places ---------------------------------------------------------------------------------

NAMES = ["", ".", "..", "../matmul_bias_relu", "a/b", "-x", "A", "x" * 61, "ünï", "x y", "x\n", "\0", "1x", "/etc"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_no_name_never_becomes_a_path(name: str) -> None:
    with pytest.raises(UserError) as found:
        kernels.load(name, target="c")
    assert "\n" not in str(found.value)
    assert "kernel name: found" in str(found.value)


def test_an_unknown_kernel_has_a_nearest_one() -> None:
    with pytest.raises(UserError, match=r'no kernel "matmul_bias_rlu" \(did you mean "matmul_bias_relu"\?\); known:'):
        kernels.find("matmul_bias_rlu")
    Path("kernels/empty").mkdir(parents=True)
    with pytest.raises(UserError, match=r"kernels/empty: no kernel\.toml"):
        kernels.find("empty")
    assert "empty" not in kernels.names()
