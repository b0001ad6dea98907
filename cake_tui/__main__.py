"""``python -m cake_tui`` is the command ``cake-tui``."""

import sys

from cake_tui.cli import main

if __name__ == "__main__":
    sys.exit(main())
