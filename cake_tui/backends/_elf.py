"""Sizes of an ELF file's sections: what a compiler's output says of its code."""

from __future__ import annotations

import struct
from pathlib import Path


def section_bytes(path: Path, name: bytes) -> int | None:
    """Return the bytes of all sections whose name begins with `name` (its end included: ``b".text\\0"``).

    None where there is none, or where the file is no whole 64-bit little-endian ELF file.
    """
    try:
        data = path.read_bytes()
        if data[:6] != b"\x7fELF\x02\x01":
            return None
        (table,) = struct.unpack_from("<Q", data, 40)
        entry_bytes, count, names_at = struct.unpack_from("<HHH", data, 58)
        sections = [struct.unpack_from("<IIQQQQ", data, table + i * entry_bytes) for i in range(count)]
        names = sections[names_at][4]
        sizes = [size for at, *_, size in sections if data[names + at : names + at + len(name)] == name]
    except (OSError, struct.error, IndexError, OverflowError):
        return None
    return int(sum(sizes)) if sizes else None
