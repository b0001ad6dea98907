"""Element types in CUDA C++: how they are stored and what they are calculated in."""

from __future__ import annotations

from collections.abc import Mapping

STORED: Mapping[str, str] = {
    "f32": "float", "tf32": "float", "f64": "double", "i32": "int", "u8": "unsigned char", "f16": "f16",
    "bf16": "bf16",
}  # fmt: skip
CALCULATED: Mapping[str, str] = {
    "f32": "f32", "tf32": "f32", "f64": "f64", "i32": "i32", "u8": "i32", "f16": "f32", "bf16": "f32",
}  # fmt: skip
ROUNDED = {"f16": "to_f16", "bf16": "to_bf16", "tf32": "to_tf32"}  # from float
HALVES = ("f16", "bf16")


def widened(dtype: str, text: str) -> str:
    """Print a stored element as what it is calculated in."""
    return f"to_float({text})" if dtype in HALVES else text


def narrowed(dtype: str, text: str) -> str:
    """Print a calculated value as what is stored."""
    if dtype in ROUNDED:
        return f"{ROUNDED[dtype]}({text})"
    return f"static_cast<unsigned char>({text})" if dtype == "u8" else text
