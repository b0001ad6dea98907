"""Reads kernel.toml into a problem; every mistake in the file is reported in one go, with its line."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

import msgspec

from cake_tui import registry
from cake_tui.errors import UserError, did_you_mean, printable
from cake_tui.ir.origins import LARGEST_SIZE
from cake_tui.kernels.expressions import read_expression, value_at
from cake_tui.kernels.families import OF_REDUCTIONS, read_expressions
from cake_tui.kernels.folders import NAME, find, names
from cake_tui.kernels.shapes import override, too_large
from cake_tui.kernels.template import read_template
from cake_tui.model.device import TARGETS, Target
from cake_tui.model.problem import BufferSpec, Family, Problem, Role, Shape
from cake_tui.toml import Mistakes, Table, read_document, read_text, shown

PEERS: Mapping[str, tuple[str, ...]] = {"c": ("numpy",), "cuda": ("cublas", "torch")}
DTYPES = ("f32", "f64", "f16", "i32", "u8")  # that a reference can hold: numpy has no bf16; tf32 is a way to compute
FILLS = ("normal", "uniform", "zeros", "ones", "integers")
_SIZE = re.compile(r"[A-Z][A-Za-z0-9_]{0,31}")
_BUFFER = re.compile(r"[a-z][a-z0-9_]{0,31}")
_FIRST = "first"
_MOST_BUFFERS, _MOST_SHAPES = 32, 64
_OF_TEMPLATES = ("entry", "knobs", "require", "launch")
_OF_FAMILIES = dict.fromkeys(OF_REDUCTIONS, 'a kernel of the family "reduction"')
_ELSEWHERE = dict.fromkeys(("dtype", "fill", "scale", "role"), "a buffer") | dict.fromkeys(
    ("grid", "block", "smem_bytes"), "launch"
)


@dataclass(frozen=True)
class Kernel:
    """A kernel's folder as read for one target: `problem` is what sessions work on, the rest is for people."""

    folder: Path
    title: str
    targets: tuple[Target, ...]
    problem: Problem


def load(name: str, *, target: Target, shapes: Sequence[str] = (), seed: int = 0) -> Problem:
    """Return the problem of a kernel, its shapes replaced by ``--shape`` texts where there are any.

    Raises UserError: one line a mistake, ``file:line: key: found, allowed`` and the nearest name.
    """
    return read(name, target=target, shapes=shapes, seed=seed).problem


def read(name: str, *, target: Target, shapes: Sequence[str] = (), seed: int = 0) -> Kernel:
    """Read a kernel's folder for one target; raises UserError, one line a mistake."""
    return _read(find(name), name, target, shapes, seed, may_refer=True)


def refuse_mistakes(name: str) -> None:
    """Read a kernel's folder for any target that it serves; raises UserError, one line a mistake."""
    read_folder(find(name), name)


def read_folder(folder: Path, name: str) -> Kernel:
    """Read a folder that may not be in place yet, for the first target that it serves; raises UserError."""
    refused = OtherTarget(f"kernel {name}: no target")
    for target in TARGETS:
        try:
            return _read(folder, name, target, (), 0, may_refer=True)
        except OtherTarget as error:
            refused = error
    raise refused


class OtherTarget(UserError):
    """The kernel is well written, for another target."""


def _read(folder: Path, name: str, target: Target, shapes: Sequence[str], seed: int, *, may_refer: bool) -> Kernel:
    document = read_document(folder / "kernel.toml")
    mistakes = Mistakes(document)
    table = Table(mistakes, (), document.value)
    title = printable(" ".join((table.text("title") or name).split()))
    reference, parent = _read_reference(table, folder, target, may_refer)
    family = table.choice("family", _families(), parent.family if parent else None)
    is_template = table.has("template")
    if family is None and not is_template and "family" not in table.value:
        table.mistake((), f'neither "family" nor "template"; allowed: family = {shown(_families()[0])}, or template')
    unread = parent is None and reference is None and table.has("reference")  # its mistake is noted; not those after it
    sizes, by_target = _read_shapes(table, parent, required=not unread)
    buffers = _read_buffers(table, sizes, parent, required=not unread)
    computed = read_expressions(table, family, buffers, parent)
    if is_template and computed.value == "" and reference is None and not unread:
        table.mistake((), 'a template needs a "reference": reference.py, another kernel\'s name, or "first"')
    targets = _read_targets(table)
    template = None
    if is_template:
        taken = [*sizes, *(buffer.name for buffer in buffers)]
        template = read_template(table, folder, by_target.get(target, ()), taken)
    minimum_work = table.text("minimum_work") or (parent.minimum_work if parent else "0")
    for shape in by_target.get(target, ()):
        work = value_at(table, ("minimum_work",), minimum_work, dict(shape.sizes))
        if work is not None and (isinstance(work, bool) or not 0 <= work < float("inf")):
            table.mistake(("minimum_work",), f'"{minimum_work}" is {work} at {shape.text}; at least 0, and finite')
        large = too_large(shape, buffers) if not len(mistakes) else None
        if large is not None:
            table.mistake(("shapes",), large)
    default = parent or _DEFAULTS
    problem = Problem(
        kernel=name,
        family=cast(Family | None, family),
        value=computed.value,
        map=computed.map,
        combine=cast(Any, computed.combine),
        buffers=buffers,
        shapes=by_target.get(target) or (Shape(()),),
        ranking=cast(Any, table.choice("ranking", ("last", "mean", "geom"), default.ranking)),
        cache=cast(Any, table.choice("cache", ("warm", "cold"), default.cache)),
        accumulation=cast(Any, table.choice("accumulation", ("ordered", "blocked", "any"), default.accumulation)),
        precision=cast(Any, table.choice("precision", ("fp32", "strict"), default.precision)),
        tolerance_abs=table.number("tolerance_abs", default.tolerance_abs, 1e-12, 1e12),
        tolerance_units=table.number("tolerance_units", default.tolerance_units, 1.0, 1e9),
        minimum_work=minimum_work,
        peers=_read_peers(table, target, parent),
        seed=seed,
        reference=None if reference == _FIRST else reference,
        reference_is_first=reference == _FIRST,
        template=template,
    )
    for key in _OF_TEMPLATES if is_template else ():
        table.has(key)
    table.close(
        _ELSEWHERE | _OF_FAMILIES | ({} if is_template else dict.fromkeys(_OF_TEMPLATES, 'a kernel with "template"'))
    )
    mistakes.raise_if_any()
    _refuse_target(name, target, targets, template.target if template else None, target in by_target)
    return Kernel(folder, title, targets, _at_shapes(problem, shapes))


def _families() -> tuple[str, ...]:
    """Families that have a folder of structures, so that a new family is a folder."""
    return tuple(family for family in get_args(Family) if (registry.PACKAGE / "ir/build" / family).is_dir())


def _refuse_target(name: str, target: str, targets: Sequence[str], of_file: str | None, has_shapes: bool) -> None:
    if of_file is not None and of_file != target:
        raise OtherTarget(
            f"kernel {name}: its file is for {of_file}, and this device takes {target}; choose another device"
        )
    if target not in targets or not has_shapes:
        raise OtherTarget(f"kernel {name}: it is for {', '.join(targets)}, not for {target}; choose another device")


def _at_shapes(problem: Problem, texts: Sequence[str]) -> Problem:
    if not texts:
        return problem
    changed = tuple(dict.fromkeys(override(text, problem.shapes[0]) for text in texts))
    for shape in changed:
        wrong = too_large(shape, problem.buffers)
        if wrong is not None:
            raise UserError(f"--shape: {wrong}")
    return msgspec.structs.replace(problem, shapes=changed)


# --- parts of the file --------------------------------------------------------------------------------


def _read_targets(table: Table) -> tuple[Target, ...]:
    found = table.texts("targets", allowed=TARGETS)
    return cast(tuple[Target, ...], found or TARGETS)


def _read_peers(table: Table, target: str, parent: Problem | None) -> tuple[str, ...]:
    known = tuple(peer for peers in PEERS.values() for peer in peers)
    if not table.has("peers") and parent is not None:
        return parent.peers
    return tuple(peer for peer in table.texts("peers", allowed=known) if peer in PEERS[target])


def _read_reference(table: Table, folder: Path, target: Target, may_refer: bool) -> tuple[str | None, Problem | None]:
    """Return the reference's text (or ``first``), and the kernel it is taken from where one is named."""
    text = table.text("reference")
    if text is None:
        return None, None
    if text == _FIRST:
        if "template" not in table.value:
            table.mistake(("reference",), '"first" is for templates; a family has its reference in "value"')
        return _FIRST, None
    if text.endswith(".py"):
        if Path(text).name != text:
            table.wrong("reference", text, 'a file of this folder: "reference.py"')
            return None, None
        return _read_python(table, folder / text), None
    allowed = f'"reference.py", "first", or a kernel: {", ".join(names())}'
    if not NAME.fullmatch(text) or not may_refer:
        table.wrong("reference", text, allowed if may_refer else "a kernel named as a reference names none itself")
        return None, None
    try:
        parent = _read(find(text), text, target, (), 0, may_refer=False).problem
    except UserError as error:
        table.mistake(("reference",), f"found {shown(text)}: {str(error).splitlines()[0]}")
        return None, None
    return parent.reference, parent


def _read_python(table: Table, path: Path) -> str | None:
    try:
        text = read_text(path)
        found = ast.parse(text)
    except UserError as error:
        table.mistake(("reference",), str(error))
        return None
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        table.mistake(("reference",), f"{path.name}{f':{line}' if line else ''}: {getattr(error, 'msg', error)}")
        return None
    if not any(isinstance(node, ast.FunctionDef) and node.name == "reference" for node in found.body):
        table.mistake(("reference",), f"{path.name} has no function reference(xp, **buffers) that returns (out, S)")
        return None
    return text


def _read_shapes(
    table: Table, parent: Problem | None, *, required: bool
) -> tuple[tuple[str, ...], dict[str, tuple[Shape, ...]]]:
    """Return the names of the sizes and the shapes of each target that has some."""
    if not table.has("shapes") and parent is not None:
        return parent.size_names, dict.fromkeys(TARGETS, parent.shapes)
    found = table.raw("shapes", required=required)
    if found is None:
        return (), {}
    sizes: list[str] = []
    if isinstance(found, dict) and any(key in TARGETS for key in found):
        inner = table.inner(("shapes",), found)
        by_target = {target: _read_list(inner, target, sizes) for target in TARGETS if inner.has(target)}
        inner.close()
    else:
        shapes = _read_list(table, "shapes", sizes)
        by_target = dict.fromkeys(TARGETS, shapes)
    return tuple(sizes), {key: shapes for key, shapes in by_target.items() if shapes}


def _read_list(table: Table, key: str, sizes: list[str]) -> tuple[Shape, ...]:
    """Read ``[{ M = 512, N = 512 }]``; the first shape of the file names the sizes for all."""
    form = "an array of shapes: [{ M = 512, N = 512 }], or shapes.c and shapes.cuda with one each"
    shapes = []
    tables = table.tables(key, form=form)
    if table.value[key] == [] or len(tables) > _MOST_SHAPES:
        table.mistake((key,), f"{len(tables)} shapes; allowed: 1 to {_MOST_SHAPES}")
    for one in tables[:_MOST_SHAPES]:
        if not sizes:
            sizes += [name for name in one.value if _SIZE.fullmatch(name)]
        good = _read_sizes(one, sizes)
        if good is not None:
            shapes.append(good)
    return tuple(dict.fromkeys(shapes))


def _read_sizes(one: Table, sizes: Sequence[str]) -> Shape | None:
    good: dict[str, int] = {}
    for name, value in one.value.items():
        one.has(name)
        if not _SIZE.fullmatch(name):
            one.mistake((name,), "a size's name is letters, digits and _, beginning with a capital")
        elif name not in sizes:
            one.mistake((name,), f"no size of the first shape; it has {', '.join(sizes)}{did_you_mean(name, sizes)}")
        elif isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST_SIZE:
            one.wrong(name, value, f"a whole number from 1 to {LARGEST_SIZE}")
        else:
            good[name] = value
    missing = [name for name in sizes if name not in one.value]
    if missing or not one.value:
        one.mistake((), f"{', '.join(missing) or 'every size'} is missing")
    return Shape(tuple((name, good[name]) for name in sizes)) if len(good) == len(sizes) and good else None


def _read_buffers(
    table: Table, sizes: Sequence[str], parent: Problem | None, *, required: bool
) -> tuple[BufferSpec, ...]:
    if not table.has("buffers") and parent is not None:
        return parent.buffers
    tables = table.tables("buffers", required=required)
    if len(tables) > _MOST_BUFFERS:
        table.mistake(("buffers",), f"{len(tables)} buffers; at most {_MOST_BUFFERS}")
    buffers: dict[str, BufferSpec] = {}
    for one in tables[:_MOST_BUFFERS]:
        buffer = _read_buffer(one, sizes)
        if buffer.name in buffers:
            one.mistake(("name",), f"a second buffer {shown(buffer.name)}")
        buffers[buffer.name] = buffer
    made = tuple(buffers.values())
    if made and all(buffer.role == "in" for buffer in made):
        table.mistake(("buffers",), 'no buffer has role = "out"')
    if made and all(buffer.role == "out" for buffer in made):
        table.mistake(("buffers",), "no buffer is read")
    if parent is not None and [_contract(b) for b in made] != [_contract(b) for b in parent.buffers]:
        table.mistake(("buffers",), f"other buffers than those of the reference, {parent.kernel}; leave them out")
    return made


def _contract(buffer: BufferSpec) -> tuple[str, str, tuple[str, ...], str]:
    return (buffer.name, buffer.dtype, buffer.shape, buffer.role)


def _read_buffer(one: Table, sizes: Sequence[str]) -> BufferSpec:
    name = one.text("name", required=True) or ""
    if name and (not _BUFFER.fullmatch(name) or name == "acc"):
        one.wrong("name", name, "lower-case letters, digits and _, beginning with a letter, and not acc")
    dtype = one.choice("dtype", DTYPES, "f32") or "f32"
    shape = one.texts("shape", required=True)
    if one.value.get("shape") == []:
        one.wrong("shape", [], 'at least one extent: ["M", "K"]')
    for index, extent in enumerate(shape):
        read_expression(one, ("shape", index), extent, sizes)
    role = one.choice("role", get_args(Role), "in") or "in"
    fill = one.choice("fill", FILLS, "normal") or "normal"
    scale = one.text("scale", "1") or "1"
    read_expression(one, ("scale",), scale, sizes)
    one.close()
    return BufferSpec(name, dtype, shape, fill, scale, cast(Role, role))


_DEFAULTS = Problem(kernel="", family=None, value="", buffers=(), shapes=())
