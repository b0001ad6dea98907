"""Make a kernel's folder from another kernel, or around a kernel file of your own.

The folder is made whole or not at all, under kernels/ of the working folder. Around a file, macros that
have a default (#ifndef X / #define X 4) become knobs; edit kernel.toml to add the values to be tried.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from cake_tui import kernels
from cake_tui.cli import Command
from cake_tui.errors import OK


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the name and where it comes from."""
    parser.add_argument("name", metavar="NAME", help="the new kernel's name")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--from", dest="kernel", metavar="KERNEL", help="copy this kernel")
    source.add_argument("--template", metavar="FILE", help="a kernel.c or kernel.cu of your own")
    parser.add_argument(
        "--reference",
        metavar="KERNEL",
        default="matmul_bias_relu",
        help="with --template: the kernel that computes the same (matmul_bias_relu)",
    )


def run(args: argparse.Namespace) -> int:
    """Make the folder and say what to do next."""
    if args.kernel is not None:
        folder = kernels.copy_of(args.name, args.kernel)
    else:
        folder = kernels.around(args.name, Path(args.template), args.reference)
    print(f"made {folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")
    print(f"next: edit {folder / 'kernel.toml'}, then cake-tui check {args.name}")
    return OK


PLUGIN: Command = Command(
    example="cake-tui new my_matmul --from matmul_bias_relu", add_arguments=add_arguments, run=run
)
