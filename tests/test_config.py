"""What the environment says: who is asking."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys

import pytest

from cake_tui.config import user_name

NAMES = ("CAKE_TUI_WHO", "USER", "LOGNAME")


def test_who_asks_is_the_name_given_else_the_login_name_else_the_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    assert user_name() == pwd.getpwuid(os.getuid()).pw_name
    for name in reversed(NAMES):
        monkeypatch.setenv(name, f"by {name}")
        assert user_name() == f"by {name}"


@pytest.mark.skipif(os.getuid() != 0, reason="needs the right to be another user")
def test_a_user_without_an_account_is_named_by_number() -> None:
    program = "import os; os.setuid(54321); from cake_tui.config import user_name; print(user_name())"
    environment = {name: value for name, value in os.environ.items() if name not in NAMES}
    found = subprocess.run([sys.executable, "-c", f"import cake_tui.config; {program}"], env=environment,
                           capture_output=True, text=True, check=True)  # fmt: skip
    assert found.stdout == "uid54321\n"
