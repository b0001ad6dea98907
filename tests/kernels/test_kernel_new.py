"""New kernels: a folder is made whole or not at all, and what was made can be read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cake_tui import kernels
from cake_tui.errors import UserError

ROOT = Path(__file__).parents[2]
HAND = ROOT / "kernels/matmul_bias_relu_template/kernel.c"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_copy_has_every_file_and_reads_like_its_source() -> None:
    folder = kernels.copy_of("mine", "matmul_bias_relu_template")
    source = ROOT / "kernels/matmul_bias_relu_template"
    assert sorted(p.name for p in folder.iterdir()) == sorted(p.name for p in source.iterdir() if p.is_file())
    for path in folder.iterdir():
        assert path.read_bytes() == (source / path.name).read_bytes()
    assert kernels.load("mine", target="c").template == kernels.load("matmul_bias_relu_template", target="c").template


def test_a_folder_around_a_kernel_file_has_its_macros_as_knobs() -> None:
    folder = kernels.around("by_hand", HAND, "matmul_bias_relu")
    assert (folder / "kernel.c").read_bytes() == HAND.read_bytes()
    template = kernels.load("by_hand", target="c").template
    assert template is not None
    assert {knob.name: knob.values for knob in template.knobs} == {
        "BM": (96,), "BN": (256,), "BK": (256,), "MR": (8,), "NV": (2,), "VL": (16,),
    }  # fmt: skip
    assert (template.entry, template.grid) == ("kernel", ("ceil(N / BN)", "ceil(M / BM)"))


def test_a_macro_named_like_a_size_is_no_knob() -> None:
    Path("k.c").write_text("#ifndef M\n#define M 4\n#endif\nvoid f(const int task[3], float *y) {}\n", encoding="utf-8")
    kernels.around("mine", Path("k.c"), "matmul_bias_relu")
    template = kernels.load("mine", target="c").template
    assert template is not None
    assert (template.entry, template.knobs, template.grid) == ("f", (), ("1",))


def test_a_cuda_file_makes_a_cuda_kernel() -> None:
    Path("k.cu").write_text("__global__ void tiled(const float *a) {}\n", encoding="utf-8")
    kernels.around("mine", Path("k.cu"), "matmul_bias_relu")
    template = kernels.load("mine", target="cuda").template
    assert template is not None
    assert (template.target, template.entry, template.block) == ("cuda", "tiled", ("256",))


def left() -> list[str]:
    return sorted(str(path) for path in Path().rglob("*"))


BAD = [
    (lambda: kernels.copy_of("mine", "matmul_bias_rlu"), 'did you mean "matmul_bias_relu"?'),
    (lambda: kernels.copy_of("../mine", "matmul_bias_relu"), "kernel name: found"),
    (lambda: kernels.copy_of("Mine", "matmul_bias_relu"), "lower-case"),
    (lambda: kernels.around("mine", Path("nothing.c"), "matmul_bias_relu"), "no such file"),
    (lambda: kernels.around("mine", Path("/"), "matmul_bias_relu"), "allowed: a .c or .cu file"),
    (lambda: kernels.around("mine", HAND, "matmul_bias_rlu"), 'did you mean "matmul_bias_relu"?'),
    (lambda: kernels.around("mine", HAND, "first"), "no kernel"),
]


@pytest.mark.parametrize(("make", "said"), BAD)
def test_a_mistake_leaves_nothing_behind(make, said: str) -> None:
    with pytest.raises(UserError) as found:
        make()
    assert said in str(found.value)
    assert left() == []


def test_a_file_without_a_kernel_and_a_broken_source_are_refused() -> None:
    Path("empty.c").write_text("int main(void) { return 0; }\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"no kernel in it; write one as void NAME\(const int task"):
        kernels.around("mine", Path("empty.c"), "matmul_bias_relu")
    broken = Path("kernels/broken")
    broken.mkdir(parents=True)
    (broken / "kernel.toml").write_text('family = "contractoin"\n', encoding="utf-8")
    with pytest.raises(UserError, match="contractoin"):
        kernels.copy_of("mine", "broken")
    assert left() == ["empty.c", "kernels", "kernels/broken", "kernels/broken/kernel.toml"]


def test_what_is_there_is_never_overwritten() -> None:
    kernels.copy_of("mine", "matmul_bias_relu")
    before = left()
    with pytest.raises(UserError, match="kernels/mine is there already"):
        kernels.copy_of("mine", "matmul_bias_gelu")
    Path("kernels/link").symlink_to("nowhere")
    with pytest.raises(UserError, match="is there already"):
        kernels.copy_of("link", "matmul_bias_relu")
    assert left() == sorted([*before, "kernels/link"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_an_environment_mistake() -> None:
    Path("kernels").mkdir(mode=0o500)
    with pytest.raises(UserError) as found:
        kernels.copy_of("mine", "matmul_bias_relu")
    assert found.value.exit_code == 3


def test_a_file_in_place_of_the_kernels_folder_is_an_environment_mistake() -> None:
    Path("kernels").write_text("", encoding="utf-8")
    with pytest.raises(UserError) as found:
        kernels.copy_of("mine", "matmul_bias_relu")
    assert found.value.exit_code == 3
    assert left() == ["kernels"]


def test_kernels_and_actions_come_with_an_installed_package(tmp_path: Path) -> None:
    """The tree as a wheel unpacks it: the package with ``_data``, nothing beside it."""
    site = tmp_path / "site"
    (site / "cake_tui").mkdir(parents=True)
    for path in (ROOT / "cake_tui").iterdir():
        if path.name != "__pycache__":
            (site / "cake_tui" / path.name).symlink_to(path)
    for real in ("registry.py", "__init__.py"):
        (site / "cake_tui" / real).unlink()
        (site / "cake_tui" / real).write_bytes((ROOT / "cake_tui" / real).read_bytes())
    data = site / "cake_tui" / "_data"
    data.mkdir()
    (data / "kernels").symlink_to(ROOT / "kernels")
    (data / "actions.toml").symlink_to(ROOT / "actions.toml")
    (site / "kernels" / "foreign").mkdir(parents=True)  # another package's folder of the same name
    (site / "kernels" / "foreign" / "kernel.toml").write_text("", encoding="utf-8")
    empty = tmp_path / "empty"
    empty.mkdir()
    code = (
        "from cake_tui import kernels, menu\n"
        "print(*kernels.names())\n"
        "print(kernels.find('matmul_bias_relu'))\n"
        "print(menu.find())\n"
        "print(kernels.load('matmul_bias_relu', target='c').shapes[0].text)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=empty, env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    names, folder, actions, shape = done.stdout.splitlines()
    assert {"matmul_bias_gelu", "matmul_bias_relu", "matmul_bias_relu_template"} <= set(names.split())
    assert "foreign" not in names.split()
    assert (folder, actions) == (str(data / "kernels/matmul_bias_relu"), str(data / "actions.toml"))
    assert shape == "M=512,N=512,K=512"
