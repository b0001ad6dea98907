"""How the screen is drawn, on the command line."""

from __future__ import annotations

import argparse

from cake_tui.tui import Look


def add_look_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how the screen is drawn."""
    parser.add_argument("--slow-link", action="store_true", help="at most 1 KB/s: one repaint every ten seconds")
    parser.add_argument("--ascii", action="store_true", help="no boxes, arrows and dots (the default where not UTF-8)")
    parser.add_argument("--light", action="store_true", help="colours for a terminal with a white ground")
    parser.add_argument("--no-mouse", action="store_true", help="leave the mouse to the terminal, to select text with")


def look_of(args: argparse.Namespace) -> Look:
    """How the arguments want the screen drawn."""
    return Look(args.slow_link, args.ascii or None, args.light or None, not args.no_mouse)
