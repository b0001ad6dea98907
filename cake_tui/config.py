"""Settings: frozen, one small class a step, named and changeable mid-run; and the environment, read here alone."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Any

import msgspec

from cake_tui.errors import UserError, did_you_mean, quoted


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When the run is done."""

    candidates: int = 600  # effective ones
    hours: float = 24.0
    rounds: int = 0  # stop after so many rounds without a win; 0: off
    exhausted_rounds: int = 20  # rounds without a new source until the space is exhausted


class Proposing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many proposals a round and which of them are kept."""

    round: int = 4
    propose_factor: int = 2
    screen: bool = True
    audit: float = 0.1  # share of the screened-out run all the same, on top of `round`
    patience: int = 20  # rounds without a win until a stall is declared
    trial_rounds: int = 3  # rounds in which a new structure keeps a slot of its own
    ahead: bool = True  # propose and build a round while the one before is timed, where compilers do not disturb that


class Building(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Compilers and their limit."""

    compile_s: float = 120.0
    smoke_fraction: float = 0.125
    threads: int = 0  # of the kernels, at most the physical cores; 0: all of them


class Gating(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The gate and how much it may spend."""

    gate_series: int = 64  # at most, on the CPU; 256 on cuda
    gate_top: int = 2
    sample_ms: float = 10.0  # 2 on cuda
    accept_pct: float = 0.5


class Profiling(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The profiler: how many candidates of a round it looks at, how often, and how much of the time it may take."""

    profile_top: int = 2
    profile_rounds: int = 4  # between two calls; people's wishes are met at once
    profile_share: float = 0.15


class Running(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The engine's own affairs."""

    heartbeat: float = 1.0
    run_s: float = 2.0  # a run's limit is max(run_s, run_factor x the best)
    run_factor: float = 50.0
    disk: float = 2.0  # GB a session
    equal_failures: int = 20  # so many equal failures in a row pause the run
    guard_refusals: int = 5  # so many refusals in a row: take the steady state as normal, or pause


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All settings of a session; each has one flat name, as `set NAME VALUE` and session.toml use it."""

    budget: Budget = Budget()
    proposing: Proposing = Proposing()
    building: Building = Building()
    gating: Gating = Gating()
    profiling: Profiling = Profiling()
    running: Running = Running()

    @classmethod
    def of_device(cls, kind: str) -> Settings:
        """Return the defaults for a kind of device: on a GPU samples are steadier, and shorter for it."""
        return cls(gating=Gating(gate_series=256, sample_ms=2.0)) if kind == "cuda" else cls()

    def flat(self) -> dict[str, Any]:
        """Return ``{"round": 4, ...}`` over all steps."""
        out: dict[str, Any] = {}
        for group in msgspec.structs.asdict(self).values():
            out.update(msgspec.structs.asdict(group))
        return out

    def changed(self, **values: Any) -> Settings:
        """Return new settings; raises UserError naming the setting, what was found and what is allowed."""
        groups = msgspec.structs.asdict(self)
        for name, value in values.items():
            for key, group in groups.items():
                if name in group.__struct_fields__:
                    typed = _typed(name, value, type(getattr(group, name)))
                    groups[key] = msgspec.structs.replace(group, **{name: typed})
                    break
            else:
                known = sorted(self.flat())
                raise UserError(f"no setting {quoted(name)}{did_you_mean(name, known)}; known: {', '.join(known)}")
        return Settings(**groups)

    @classmethod
    def from_flat(cls, values: dict[str, Any]) -> Settings:
        """Inverse of `flat`; names of newer versions are skipped."""
        known = cls().flat()
        return cls().changed(**{name: value for name, value in values.items() if name in known})


FIXED = ("threads",)  # once a session has begun: times with other values do not compare

RANGES: dict[str, tuple[float, float]] = {
    "candidates": (1, 1e7), "hours": (1e-4, 1e5), "rounds": (0, 1e6), "exhausted_rounds": (1, 1e6),
    "round": (1, 64), "propose_factor": (1, 8), "audit": (0, 1), "patience": (1, 1e6), "trial_rounds": (0, 100),
    "compile_s": (0.1, 3600), "smoke_fraction": (0.001, 1), "threads": (0, 1024),
    "gate_series": (4, 4096), "gate_top": (1, 64), "sample_ms": (0.05, 10_000),
    "accept_pct": (0.0, 50), "profile_top": (0, 64), "profile_rounds": (1, 1e6), "profile_share": (0, 1),
    "heartbeat": (0.05, 3600), "run_s": (0.05, 3600), "run_factor": (2, 1e6),
    "disk": (0.001, 1e6), "equal_failures": (2, 1e6), "guard_refusals": (1, 1000),
}  # fmt: skip


def _typed(name: str, value: Any, kind: type) -> Any:
    """Read a setting's value from text or TOML; raises UserError with what is allowed."""
    if kind is bool:
        words = {
            "true": True,
            "on": True,
            "yes": True,
            "1": True,
            "false": False,
            "off": False,
            "no": False,
            "0": False,
        }
        found = words.get(str(value).lower())
        if found is None:
            raise UserError(f'setting "{name}": found {value!r}, allowed: true, false')
        return found
    low, high = RANGES[name]
    try:
        number = kind(value) if not isinstance(value, bool) else None
        if number is None or (kind is int and float(value) != number):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        word = "a whole number" if kind is int else "a number"
        raise UserError(f'setting "{name}": found {value!r}, allowed: {word} from {low:g} to {high:g}') from None
    if not low <= number <= high:
        raise UserError(f'setting "{name}": found {value!r}, allowed: {low:g} to {high:g}')
    return number


# --- the environment ----------------------------------------------------------------------------------


def environment(name: str, default: str | None = None) -> str | None:
    """Read one environment variable; an empty one counts as unset."""
    return os.environ.get(name) or default


def child_environment(drop: tuple[str, ...] = (), **extra: str) -> dict[str, str]:
    """Return the environment for a child process without the names in `drop` and with `extra` set."""
    env = {name: value for name, value in os.environ.items() if name not in drop}
    env.update(extra)
    return env


def sessions_dir() -> Path:
    """``$CAKE_TUI_SESSIONS``, else ``sessions/`` in the working folder."""
    return Path(environment("CAKE_TUI_SESSIONS") or "sessions")


def lock_dir() -> Path:
    """Folder of the device locks, shared by users: ``$CAKE_TUI_LOCKS``, else ``/tmp/cake-tui-locks``."""
    return Path(environment("CAKE_TUI_LOCKS") or "/tmp/cake-tui-locks")


def cache_dir() -> Path:
    """Cache of compiled runtimes: ``$XDG_CACHE_HOME/cake-tui``, else ``~/.cache/cake-tui``."""
    return Path(environment("XDG_CACHE_HOME") or Path.home() / ".cache") / "cake-tui"


def settings_dir() -> Path:
    """What a person set for all sessions: ``$XDG_CONFIG_HOME/cake-tui``, else ``~/.config/cake-tui``."""
    return Path(environment("XDG_CONFIG_HOME") or Path.home() / ".config") / "cake-tui"


def cuda_compiler() -> str:
    """What compiles CUDA: ``$CAKE_TUI_CUDA_COMPILER``, ``nvrtc`` (the default), ``nvcc`` or an nvcc's path."""
    return environment("CAKE_TUI_CUDA_COMPILER") or "nvrtc"


def show_only_gpu(uuid: str) -> None:
    """Have the CUDA libraries that this process loads see one GPU alone: the fewer, the sooner they start."""
    os.environ["CUDA_VISIBLE_DEVICES"] = uuid


def user_name() -> str:
    """Who is asking, for requests and the journal: ``$CAKE_TUI_WHO``, else the login name."""
    named = environment("CAKE_TUI_WHO") or environment("USER") or environment("LOGNAME")
    if named:
        return named
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user without an entry
        return f"uid{os.getuid()}"
