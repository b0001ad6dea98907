"""A JSON record of the best kernel: everything that the bundle says, the source too."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cake_tui.errors import UserError
from cake_tui.exporters import Bundle, Exporter


class JsonRecord:
    """One object, sorted and indented."""

    suffix = ".json"

    def command(self, bundle: Bundle, compiler: Sequence[str], source: str, program: str) -> None:
        """It is no program."""

    def write(self, bundle: Bundle) -> str:
        """Return the record's text."""
        return msgspec.json.format(msgspec.json.encode(bundle, order="sorted"), indent=2).decode() + "\n"

    def read(self, text: str) -> Bundle:
        """Return what the record says; raises UserError for another text."""
        try:
            return msgspec.json.decode(text, type=Bundle)
        except (msgspec.MsgspecError, UnicodeEncodeError) as error:
            raise UserError(f"not a record of cake-tui: {error}") from None


PLUGIN: Exporter = JsonRecord()
