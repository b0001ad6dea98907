"""Any value in any place of kernel.toml or actions.toml is taken or refused with its line, never a crash."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cake_tui import kernels, menu
from cake_tui.errors import UserError
from tests.menu.sample import CPU, problem

ROOT = Path(__file__).parents[2]
KERNEL = tomllib.loads((ROOT / "kernels/matmul_bias_relu/kernel.toml").read_text(encoding="utf-8"))
TEMPLATE = tomllib.loads((ROOT / "kernels/matmul_bias_relu_template/kernel.toml").read_text(encoding="utf-8"))
ACTIONS = tomllib.loads((ROOT / "actions.toml").read_text(encoding="utf-8"))
SOURCE = (ROOT / "kernels/matmul_bias_relu_template/kernel.c").read_text(encoding="utf-8")

SCALARS = st.one_of(
    st.text(max_size=8), st.integers(-(2**40), 2**70), st.booleans(), st.floats(), st.dates(),
    st.sampled_from(["", "M", "K*K", "$m", "reference.py", "first", "..", "1/0", "M/0", "9" * 40, "sqrt(-1)", "c"]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
CHANGES = st.tuples(st.integers(0, 10**6), st.sampled_from(["put", "drop", "add"]), VALUES)
FUZZ = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


def changed(document: dict[str, Any], change: tuple[int, str, Any]) -> str:
    document = copy.deepcopy(document)
    number, how, value = change
    found = list(places(document))
    holder, key = found[number % len(found)]
    if how == "put":
        holder[key] = value
    elif how == "drop":
        del holder[key]
    elif isinstance(holder, dict):
        holder["added"] = value
    else:
        holder.append(value)
    return tomli_w.dumps(document)


def write(folder: Path, name: str, text: str, **files: str) -> Path:
    path = folder / name
    path.mkdir(parents=True, exist_ok=True)
    (path / "kernel.toml").write_text(text, encoding="utf-8")
    for file, content in files.items():
        (path / file.replace("_", ".")).write_text(content, encoding="utf-8")
    return path


def taken_or_refused(load: Any, label: str) -> None:
    try:
        load()
    except UserError as error:
        lines = str(error).split("\n")
    else:
        lines = []
    assert all(label in line or line.startswith("kernel mine: it") for line in lines), lines


@FUZZ
@given(change=CHANGES)
def test_any_change_of_a_kernels_file(change: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "kernels", "mine", changed(KERNEL, change))
    taken_or_refused(lambda: kernels.load("mine", target="c"), "kernel.toml:")


@FUZZ
@given(change=CHANGES)
def test_any_change_of_a_templates_file(change: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "kernels", "mine", changed(TEMPLATE, change), kernel_c=SOURCE)
    taken_or_refused(lambda: kernels.load("mine", target="c"), "kernel.toml:")


@FUZZ
@given(change=CHANGES)
def test_any_change_of_the_action_space(change: Any, tmp_path: Path) -> None:
    path = tmp_path / "actions.toml"
    path.write_text(changed(ACTIONS, change), encoding="utf-8")
    taken_or_refused(lambda: list(menu.load(path, problem(), CPU).moves(None)), "actions.toml:")  # type: ignore[arg-type]
