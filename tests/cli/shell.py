"""Runs commands of the product in a folder of their own, as a person at a shell would."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from cake_tui.cli import main
from cake_tui.store.lock import living_holder
from tests.engine.scripted import kinds

ROOT = Path(__file__).parents[2]
QUIET = "ridge,noise=0,drift=0"
STEP_ENDS = {"BuildEnded", "CheckEnded", "Coarse", "GateEnded", "CandidateEnded"}
SLOW = "ridge,series_s=0.03,compile_s=0.3"


class Shell:
    """Runs commands in a working folder of its own, without a terminal unless asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sessions = folder / "sessions"
        self.environment = {
            **os.environ, "PYTHONPATH": str(ROOT), "CAKE_TUI_LOCKS": str(folder / "locks"), "CAKE_TUI_WHO": "tester",
            "XDG_CACHE_HOME": str(folder / "cache"),
        }  # fmt: skip
        self.environment.pop("CAKE_TUI_SESSIONS", None)

    def words(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "cake_tui", *words]

    def __call__(self, *words: str, code: int = 0, **environment: str) -> str:
        """Run one command; return what it printed, on stderr where it failed."""
        if words[0] in ("run", "resume") or environment:
            found, out, err = self._apart(words, environment)
        else:
            found, out, err = self._here(words)
        assert found == code, (words, found, out, err)
        assert "\x1b" not in out + err
        return err if code else out

    def _apart(self, words: tuple[str, ...], environment: dict[str, str]) -> tuple[int, str, str]:
        done = subprocess.run(
            self.words(*words), cwd=self.folder, env={**self.environment, **environment}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, encoding="utf-8", timeout=60, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def _here(self, words: tuple[str, ...]) -> tuple[int, str, str]:
        # What starts no process can run in this one, which saves the start of an interpreter.
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
        texts = []
        for stream in (out, err):
            stream.flush()
            stream.seek(0)
            texts.append(stream.read())
        return code, texts[0], texts[1]

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json"))

    def start(self, name: str = "a", device: str = SLOW, **flags: object) -> Path:
        given = [word for key, value in flags.items() for word in (f"--{key}", str(value))]
        said = self("run", "--backend", "simulated", "--device", device, "--name", name, *given)
        assert f"attach {name}" in said
        return self.sessions / name

    def headless(self, name: str = "a", device: str = QUIET, code: int = 0, **flags: object) -> Path:
        given = [word for key, value in flags.items() for word in (f"--{key}", str(value))]
        self("run", "--backend", "simulated", "--device", device, "--name", name, "--headless", *given, code=code)
        return self.sessions / name

    def pid(self, name: str = "a") -> int:
        holder = living_holder(self.sessions / name / "lock")
        assert holder is not None
        return holder.pid


def ended(session: Path) -> int:
    return kinds(session).count("CandidateEnded") if (session / "journal.jsonl").exists() else 0
