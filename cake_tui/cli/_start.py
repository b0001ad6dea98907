"""The start screen as plain text: your sessions and what to do next."""

from __future__ import annotations

from pathlib import Path

from cake_tui import kernels
from cake_tui.errors import UserError
from cake_tui.store import name as names
from cake_tui.store.progress import line_about, summary_of, trouble_with

_NEXT = {
    "running": "watch it:      cake-tui attach {name}",
    "paused": "go on with it: cake-tui resume {name}",
    "stopped": "go on with it: cake-tui resume {name}",
    "gone": "go on with it: cake-tui resume {name}",
    "failed": "see why:       cake-tui tail {name}",
    "done": "take the best: cake-tui export {name}",
}
_MOST = 20


def start_screen() -> str:
    """Return the text for ``cake-tui`` without a command; a damaged session is named, never in the way."""
    folder = names.folder_of()
    found = names.all_names()
    lines = [f"Sessions in {folder}:" if found else f"No sessions in {folder} yet."]
    for name in found[-_MOST:]:
        lines += [f"  {line}" for line in _about(folder / name)]
    if len(found) > _MOST:
        lines.append(f"  and {len(found) - _MOST} more: cake-tui list")
    shown = kernels.names()
    example = "matmul_bias_relu" if "matmul_bias_relu" in shown or not shown else shown[0]
    lines += ["", f"Begin one:     cake-tui run {example} --name NAME"]
    lines += [f"Kernels:       {', '.join(shown) or 'none'} (your own: cake-tui new --help)"]
    lines += ["This machine:  cake-tui doctor", "All commands:  cake-tui --help", ""]
    return "\n".join(lines)


def _about(path: Path) -> tuple[str, str]:
    try:
        state = summary_of(path).state
        said = line_about(path)
    except UserError as error:
        return trouble_with(path, error), f"    see: cake-tui show {path.name}"
    return said, "    " + _NEXT.get(state, "look at it:    cake-tui show {name}").format(name=path.name)
