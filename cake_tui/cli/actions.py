"""List the action space: what agents and people may do to a kernel, with the legal values.

It comes from actions.toml of the working folder, else from the packaged one. A running session re-reads the
file, so what --enable, --disable, --values and --add write there takes effect within a round.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from cake_tui import kernels, menu
from cake_tui.cli import Command
from cake_tui.cli._output import print_json
from cake_tui.errors import OK
from cake_tui.menu import editing
from cake_tui.menu.action import spelled
from cake_tui.menu.words import typed_values
from cake_tui.model.device import TARGETS
from cake_tui.model.problem import Problem
from cake_tui.toml import read_document, read_text, shown_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the kernel, the target, the file and what to change in it."""
    parser.add_argument("kernel", metavar="KERNEL", nargs="?", default="matmul_bias_relu", help="(matmul_bias_relu)")
    parser.add_argument("--target", choices=TARGETS, help="c: the CPU; cuda: a GPU (what the kernel is for)")
    parser.add_argument("--file", metavar="FILE", type=Path, help="another actions.toml")
    parser.add_argument("--enable", metavar="ACTION", help="take this action into the menu again")
    parser.add_argument("--disable", metavar="ACTION", help="take this action out of the menu")
    parser.add_argument(
        "--values",
        nargs=2,
        metavar=("ACTION", "NAME=V,V"),
        help="give a parameter other values: apply_unroll factor=1,2,4",
    )
    parser.add_argument("--add", metavar="FILE", type=Path, help="append an [[action]] from this file")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    """Change the file where that is asked for, then print the menu."""
    path = args.file or menu.find()
    document = read_document(path)
    problem = _problem(args.kernel, args.target)
    target = args.target or (problem.template.target if problem.template else "c")
    menu.bound_actions(document, problem, target)
    path = _changed(path, args, target)
    document = read_document(path)
    actions = menu.bound_actions(document, problem, target)
    if args.json:
        listed = [_plain(action) for action in actions]
        print_json({"file": shown_path(path), "kernel": problem.kernel, "target": target, "actions": listed})
        return OK
    usable = [action for action in actions if action.usable]
    print(f"{shown_path(path)} · {problem.kernel} on {target} · {len(usable)} of {len(actions)} actions usable\n")
    for action in actions:
        print(f"  {action.level:<6} {action.signature:<30} {action.summary}")
        for parameter in action.parameters:
            about = f"   ({parameter.about})" if parameter.about else ""
            print(f"         {parameter.name:>12}: {' '.join(map(spelled, parameter.values))}{about}")
        if action.refused:
            print(f"         no meaning here: {action.refused}")
        elif not action.enabled:
            print("         disabled")
    return OK


def _changed(path: Path, args: argparse.Namespace, target: str) -> Path:
    """Write what the flags ask for into the file; return the file that was written, else `path`."""
    if args.add is not None:
        path = editing.add_action(path, read_text(args.add), shown_path(args.add))
    if args.values is not None:
        action, text = args.values
        parameter, _, values = text.partition("=")
        path = editing.set_values(path, action, target, parameter.strip(), typed_values(values))
    for name, enabled in ((args.enable, True), (args.disable, False)):
        if name is not None:
            path = editing.set_enabled(path, name, enabled)
    return path


def _problem(kernel: str, target: str | None) -> Problem:
    """Load the kernel for the asked target, else for the first that it serves."""
    if target is not None:
        return kernels.load(kernel, target="cuda" if target == "cuda" else "c")
    try:
        return kernels.load(kernel, target="c")
    except kernels.OtherTarget:
        return kernels.load(kernel, target="cuda")


def _plain(action: menu.Action) -> dict[str, Any]:
    """An action as JSON has it."""
    return {
        "name": action.name,
        "signature": action.signature,
        "level": action.level,
        "summary": action.summary,
        "parameters": [{"name": p.name, "values": p.values, "about": p.about} for p in action.parameters],
        "edits": [edit.do for edit in action.edits],
        "hints": action.hints,
        "enabled": action.enabled,
        "usable": action.usable,
        "refused": action.refused or None,
    }


PLUGIN: Command = Command(example="cake-tui actions --json", add_arguments=add_arguments, run=run)
