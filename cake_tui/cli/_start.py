"""The start screen as plain text: your sessions and what to do next."""

from __future__ import annotations

from cake_tui.config import sessions_dir


def start_screen() -> str:
    """Return the text for ``cake-tui`` without a command."""
    folder = sessions_dir()
    found = sorted(path.parent.name for path in folder.glob("*/session.toml")) if folder.is_dir() else []
    if not found:
        return (
            f"No sessions in {folder}.\n\n"
            "Begin one:   cake-tui run matmul_bias_relu --name first\n"
            "Look around: cake-tui --help · cake-tui doctor\n"
        )
    lines = [f"Sessions in {folder}:", *(f"  {name}" for name in found), ""]
    lines += [f"Watch one:   cake-tui attach {found[-1]}", "Begin one:   cake-tui run matmul_bias_relu --name NAME", ""]
    return "\n".join(lines)
