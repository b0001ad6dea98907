"""An opaque program: a user's own kernel file, of which only sizes, buffers and the launch are known."""

from __future__ import annotations

import msgspec

from cake_tui.ir.expr import Expr
from cake_tui.ir.program import Buffer, Size
from cake_tui.model.schedule import KnobValue


class Opaque(msgspec.Struct, frozen=True):
    """A template with its knobs set. Launch laws read grid, block and smem_bytes; the cost model abstains.

    `source` is the user's text, unchanged; the knobs become macros in front of it. With run-time sizes the
    sizes are ``int`` arguments. A source that names the macro ``SIZES`` (in the entry's argument list, without a
    comma before it) gets them there, and as constants in the full build; any other takes ``int`` arguments always.
    """

    name: str
    target: str
    arch: str
    source: str
    entry: str
    sizes: tuple[Size, ...]
    knobs: tuple[tuple[str, KnobValue], ...]
    buffers: tuple[Buffer, ...]
    grid: tuple[Expr, ...]
    block: tuple[Expr, ...]
    smem_bytes: Expr
    structure: str = "template"
