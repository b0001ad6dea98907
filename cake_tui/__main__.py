"""The command ``cake-tui``, also as ``python -m cake_tui``."""

import signal
import sys


def main() -> int:
    """Run one command and return its exit code; ctrl+c while its modules load is no stack of imports."""
    try:
        from cake_tui.cli import main as run_command
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return run_command()


if __name__ == "__main__":
    sys.exit(main())
