"""Small functions that lowered C calls by name; a file a feature, each with its text for any element and lanes.

A file maps a function's stem to (stems it needs, text). In the text ``$V`` is the value's type, ``$E`` the
element's, ``$I`` whole numbers of the same width and lanes, ``$L`` the lanes, ``$S`` the suffix of names,
``$f`` the ending of C's mathematical functions and of constants of the type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from string import Template

from cake_tui.ir.lower.c.prelude import activation, elementwise, exponential, memory
from cake_tui.ir.program import DTYPE_BYTES

Entry = tuple[tuple[str, ...], str]

_SCALAR: Mapping[str, Entry] = {**elementwise.SCALAR, **activation.SCALAR}
_VECTOR: Mapping[str, Entry] = {**memory.VECTOR, **elementwise.VECTOR, **exponential.VECTOR, **activation.VECTOR}
_VECTOR_F64: Mapping[str, Entry] = {**_VECTOR, **activation.VECTOR_F64}
_WHOLE: Mapping[str, str] = {
    "ceil_div": "static inline long ceil_div(long a, long b) { return (a + b - 1) / b; }\n",
    "least": "static inline long least(long a, long b) { return a < b ? a : b; }\n",
    "most": "static inline long most(long a, long b) { return a > b ? a : b; }\n",
}
ELEMENTS: Mapping[str, str] = {"f32": "float", "f64": "double", "i32": "int", "u8": "unsigned char"}


def suffix(dtype: str, lanes: int) -> str:
    """Return ``f32`` or ``f32x16``."""
    return dtype if lanes == 1 else f"{dtype}x{lanes}"


def type_of(dtype: str, lanes: int) -> str:
    """Return the C type: ``float``, ``double`` or the vector's name."""
    return ELEMENTS[dtype] if lanes == 1 else suffix(dtype, lanes)


def has(stem: str, lanes: int) -> bool:
    """Whether there is such a function for scalars (lanes 1) or vectors."""
    return stem in (_SCALAR if lanes == 1 else _VECTOR)


def whole_functions(used: Iterable[str]) -> str:
    """Return the text of functions on whole numbers that the source calls."""
    return "".join(_WHOLE[name] for name in sorted(used))


def text_for(dtype: str, lanes: int, stems: Iterable[str]) -> str:
    """Return types and functions for one element type and number of lanes, needed ones first."""
    return _text(dtype, lanes, tuple(sorted(stems)))


@lru_cache(maxsize=256)
def _text(dtype: str, lanes: int, stems: tuple[str, ...]) -> str:
    table = _SCALAR if lanes == 1 else _VECTOR if dtype == "f32" else _VECTOR_F64
    ordered: list[str] = []

    def visit(stem: str) -> None:
        if stem not in ordered:
            for needed in table[stem][0]:
                visit(needed)
            ordered.append(stem)

    for stem in stems:
        visit(stem)
    size = DTYPE_BYTES[dtype]
    names = {
        "V": type_of(dtype, lanes), "E": ELEMENTS[dtype], "L": str(lanes), "S": suffix(dtype, lanes),
        "I": f"i{8 * size}x{lanes}", "f": "f" if dtype == "f32" else "",
    }  # fmt: skip
    text = ""
    if lanes > 1:
        whole = "int" if size == 4 else "long"
        width = size * lanes
        text += f"typedef {names['E']} {names['V']} __attribute__((vector_size({width})));\n"
        if any("$I" in table[stem][1] for stem in ordered):
            text += f"typedef {whole} {names['I']} __attribute__((vector_size({width})));\n"
    return text + "".join(Template(table[stem][1]).substitute(names) for stem in ordered)
