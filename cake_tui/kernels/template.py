"""A user's own kernel file: its text, its knobs, what they must keep, and its launch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from cake_tui.errors import UserError
from cake_tui.kernels.expressions import value_at
from cake_tui.model.device import Target
from cake_tui.model.problem import Shape, Template
from cake_tui.model.schedule import Knob, KnobValue, is_legal
from cake_tui.toml import Table, read_text

TARGET_OF: Mapping[str, Target] = {".c": "c", ".cu": "cuda"}
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,59}")
_MACRO_TEXT = re.compile(r"[A-Za-z0-9_ *]{1,60}")
_MOST_SCHEDULES = 10**9


def read_template(table: Table, folder: Path, shapes: Sequence[Shape], taken: Sequence[str]) -> Template | None:
    """Read ``template``, ``entry``, ``knobs``, ``require`` and ``launch``; None after noting why not.

    `taken` are the names of sizes and buffers, which no knob may have.
    """
    name = table.text("template", required=True) or ""
    entry = table.text("entry", default="kernel") or "kernel"
    if not _IDENTIFIER.fullmatch(entry):
        table.wrong("entry", entry, "the name of a function")
    source = _read_source(table, folder, name, entry)
    knobs = _read_knobs(table, taken)
    names: dict[str, int | bool] = {k.name: k.default for k in knobs if not isinstance(k.default, str)}
    require = table.texts("require")
    launch = table.table("launch")
    grid: tuple[str, ...] = ("1",)
    block: tuple[str, ...] = ("1",)
    smem_bytes = "0"
    if launch is not None:
        grid, block = _axes(launch, "grid"), _axes(launch, "block")
        smem_bytes = str(launch.raw("smem_bytes") or "0")
        launch.close()
    for shape in shapes:
        values = names | dict(shape.sizes)
        for index, condition in enumerate(require):
            holds = value_at(table, ("require", index), condition, values)
            if holds is not None and holds is not True:
                given = ", ".join(f"{key} = {value}" for key, value in values.items() if key in condition)
                what = "is no condition" if holds is not False else f"does not hold for the first values: {given}"
                table.mistake(("require", index), f'"{condition}" {what}')
        if launch is not None:
            for key, axes in (("grid", grid), ("block", block)):
                for index, text in enumerate(axes):
                    _whole(launch, (key, index), text, values, 1)
            _whole(launch, ("smem_bytes",), smem_bytes, values, 0)
    suffix = Path(name).suffix
    if source is None or suffix not in TARGET_OF:
        return None
    return Template(source, TARGET_OF[suffix], entry, knobs, require, grid, block, smem_bytes)


def _whole(table: Table, tail: tuple[str | int, ...], text: str, values: Mapping[str, int | bool], least: int) -> None:
    found = value_at(table, tail, text, values)
    if found is not None and (isinstance(found, bool) or found != int(found) or found < least):
        given = ", ".join(f"{key} = {value}" for key, value in values.items() if key in text)
        table.mistake(tail, f'"{text}" is {found} with {given}; allowed: a whole number, at least {least}')


def _read_source(table: Table, folder: Path, name: str, entry: str) -> str | None:
    path = Path(name)
    if not name:
        return None
    if path.suffix not in TARGET_OF or path.name != name:
        table.wrong("template", name, 'a file of this folder: "kernel.c" or "kernel.cu"')
        return None
    try:
        source = read_text(folder / name)
    except UserError as error:
        table.mistake(("template",), str(error))
        return None
    if not re.search(rf"\b{re.escape(entry)}\s*\(", source):
        table.mistake(("entry",) if table.has("entry") else ("template",), f'{name} has no function "{entry}"')
    return source


def _read_knobs(table: Table, taken: Sequence[str]) -> tuple[Knob, ...]:
    inner = table.table("knobs")
    if inner is None:
        return ()
    knobs = []
    count = 1
    for name, value in inner.value.items():
        inner.has(name)
        if not _IDENTIFIER.fullmatch(name):
            inner.mistake((name,), "a knob becomes a macro: letters, digits and _, not beginning with a digit")
        if name in taken:
            inner.mistake((name,), "a size or a buffer has this name; a knob needs one of its own")
        knob = _read_knob(inner, name, value)
        if knob is not None:
            knobs.append(knob)
            count *= len(knob.values)
    if count > _MOST_SCHEDULES:
        inner.mistake((), f"{count} combinations of values; at most {_MOST_SCHEDULES}")
    return tuple(knobs)


def _read_knob(inner: Table, name: str, value: object) -> Knob | None:
    """Read ``BM = [32, 64]`` or ``BM = { values = [32, 64], default = 64 }``; the default is the first value."""
    if not isinstance(value, dict):
        values = inner.values(name)
        _check_macros(inner, name, values)
        return Knob(name, values, values[0]) if values else None
    table = inner.inner((name,), value)
    values = table.values("values", required=True)
    _check_macros(table, "values", values)
    default = table.raw("default")
    table.close()
    if not values:
        return None
    if default is not None and not is_legal(default, values):
        table.wrong("default", default, ", ".join(str(v) for v in values))
        return None
    return Knob(name, values, values[0] if default is None else default)


def _check_macros(table: Table, key: str, values: Sequence[KnobValue]) -> None:
    for index, value in enumerate(values):
        if isinstance(value, str) and not _MACRO_TEXT.fullmatch(value):
            table.wrong(key, value, "words of letters, digits and _, as a macro takes them", (), index)


def _axes(launch: Table, key: str) -> tuple[str, ...]:
    """Read one to three expressions; plain numbers are expressions too."""
    found = launch.raw(key)
    if found is None:
        return ("1",)
    if not isinstance(found, list) or not 1 <= len(found) <= 3:
        launch.wrong(key, found, 'one to three expressions: ["ceil(N / BN)", "ceil(M / BM)"]')
        return ("1",)
    good = []
    for index, item in enumerate(found):
        if isinstance(item, bool) or not isinstance(item, int | str):
            launch.wrong(key, item, "a whole number or an expression in quotes", (), index)
        else:
            good.append(str(item))
    return tuple(good) or ("1",)
