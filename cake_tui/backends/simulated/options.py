"""Options of a simulated device, carried in its UUID: ``simulated:cliffs,noise=0,compile_s=2``.

| option | default | meaning |
| --- | --- | --- |
| noise | 1 | multiplies the surface's white noise, spikes and allocation bias; 0 is quiet |
| drift | 1 | multiplies the surface's slow drift |
| failures | 1 | multiplies the share of schedules that the surface itself lets fail: 0 or 1 |
| flat_us | 0 | above 0: every schedule truly takes so long (ties) |
| build_failed launch_failed crashed timed_out wrong_answer | 0 | further share of schedules that end so |
| compile_hangs | 0 | share of schedules whose compiler never ends |
| compile_s | 0 | a real compiler process that takes so long (0: answered without a process) |
| check_s series_s | 0 | the evaluator sleeps so long in each check, each series of pairs |
| log_bytes | 0 | size of the compiler's output |
| probe | 1 | 0: the test compile before the session fails |
| seed | 0 | of noise and of the shares above |

The shares spare the naive structure, so that candidate 0 always measures.
"""

from __future__ import annotations

import functools
import math
from typing import get_args

import msgspec

from cake_tui.backends.simulated.surfaces import SURFACES, Ending, Surface, surface, unit
from cake_tui.errors import UserError, did_you_mean
from cake_tui.model.schedule import Schedule

DEFAULT_SURFACE = "ridge"
PREFIX = "simulated:"


class Options(msgspec.Struct, frozen=True, omit_defaults=True):
    """One simulated device's surface and how its machine behaves; see the module's table."""

    surface: str = DEFAULT_SURFACE
    noise: float = 1.0
    drift: float = 1.0
    failures: float = 1.0
    flat_us: float = 0.0
    build_failed: float = 0.0
    launch_failed: float = 0.0
    crashed: float = 0.0
    timed_out: float = 0.0
    wrong_answer: float = 0.0
    compile_hangs: float = 0.0
    compile_s: float = 0.0
    check_s: float = 0.0
    series_s: float = 0.0
    log_bytes: float = 0.0
    probe: float = 1.0
    seed: float = 0.0

    @property
    def place(self) -> Surface:
        """The response surface itself."""
        return surface(self.surface)

    @property
    def uuid(self) -> str:
        """The device's UUID; `parse_uuid` is the inverse."""
        changed = msgspec.structs.asdict(self)
        words = [f"{k}={v:.12g}" for k, v in changed.items() if k != "surface" and v != getattr(Options(), k)]
        return PREFIX + ",".join([self.surface, *words])

    @property
    def needs_process(self) -> bool:
        """Whether a build has to be a real process: it takes time, hangs or talks."""
        return self.compile_s > 0 or self.compile_hangs > 0 or self.log_bytes > 0

    def time_us(self, schedule: Schedule) -> float:
        """Return the schedule's true time in microseconds."""
        return self.flat_us if self.flat_us > 0 else self.place.time_us(schedule)

    def compiler_hangs(self, schedule: Schedule) -> bool:
        """Tell whether the schedule's compiler never ends."""
        return schedule.structure != "naive" and self._draw(schedule, "hangs") < self.compile_hangs

    def ending(self, schedule: Schedule) -> Ending:
        """Return how the schedule truly ends: by the shares first, then by the surface."""
        if schedule.structure != "naive":
            draw = self._draw(schedule, "ending")
            for share, ending in (
                (self.build_failed, "BuildFailed"),
                (self.launch_failed, "LaunchFailed"),
                (self.crashed, "Crashed"),
                (self.timed_out, "TimedOut"),
                (self.wrong_answer, "WrongAnswer"),
            ):
                if draw < share:
                    return _ending(ending)
                draw -= share
        return self.place.ending(schedule) if self.failures > 0 else "Measured"

    def _draw(self, schedule: Schedule, word: str) -> float:
        return unit(f"{self.seed:.12g}", schedule.text, word)


_RANGES = {"flat_us": 1e9, "compile_s": 86_400.0, "check_s": 86_400.0, "series_s": 86_400.0, "log_bytes": 1e9}
_RANGES |= {"seed": 1e9, "noise": 100.0, "drift": 100.0}


def parse(text: str) -> Options:
    """Read ``SURFACE,NAME=VALUE,...``, each part optional; raises UserError with what is allowed."""
    values: dict[str, float] = {}
    name = DEFAULT_SURFACE
    for position, word in enumerate(part.strip() for part in text.split(",") if part.strip()):
        key, equals, value = (piece.strip() for piece in word.partition("="))
        if not equals and position == 0:
            name = surface(key).name
            continue
        known = [field for field in Options.__struct_fields__ if field != "surface"]
        if not equals or key not in known:
            raise UserError(
                f'simulated device: found "{word}"{did_you_mean(key, known)}, allowed: '
                f"{', '.join(SURFACES)}, or NAME=VALUE with {', '.join(known)}"
            )
        values[key] = _number(key, value)
    return Options(surface=name, **values)


@functools.lru_cache(maxsize=64)
def parse_uuid(uuid: str) -> Options:
    """Read a device's UUID; raises UserError where it is not of a simulated device."""
    if not uuid.startswith(PREFIX):
        raise UserError(f'simulated device: found UUID "{uuid}", needed: {PREFIX}SURFACE[,NAME=VALUE...]')
    return parse(uuid.removeprefix(PREFIX))


def _number(key: str, value: str) -> float:
    high = _RANGES.get(key, 1.0)
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 <= number <= high:
        raise UserError(f'simulated device: {key}: found "{value}", allowed: a number from 0 to {high:g}')
    return number


def _ending(name: str) -> Ending:
    found: Ending = next(ending for ending in get_args(Ending) if ending == name)
    return found
