"""Checks a kernel: input sets against the reference, poisons, guards, edges, replays, races, process state.

A probe that fails raises Ended(WrongAnswer) with a named reason; the kernel always runs before its reference
is computed, and the reference works on private copies of the inputs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping

import msgspec
import numpy as np

from cake_tui.backends._bounds import Comparison, agreed, compare, describe, failure_of, rule_of
from cake_tui.backends._element import NAN_BITS, Element, pick
from cake_tui.backends._inputs import EXACT_SETS, make_inputs, sets_of
from cake_tui.backends._reference import Reference
from cake_tui.backends.cpu.first import AnyReferee
from cake_tui.backends.cpu.memory import POISONS, Array, Layout, name_regions
from cake_tui.backends.cpu.runtime import Runtime
from cake_tui.backends.cpu.state import ProcessState, mapped_bytes
from cake_tui.backends.cpu.subject import Arm, Inputs, Libraries, touch
from cake_tui.errors import Ended
from cake_tui.ir.families import inputs_of
from cake_tui.model.jobs import Check, Checked
from cake_tui.model.outcome import CheckFailure, WrongAnswer
from cake_tui.model.problem import Shape

Outputs = dict[str, Array]

RACE_REPEATS = 20
CERTAIN_REPEATS = 8
RACE_BATCH = 3  # the first launches wake the pool, so that in the last all threads start together
LEAK_CALLS = 10
MOST_KEPT_BYTES = 128 << 20  # panels of all threads are far smaller
REPLAY_NS = 20_000_000
REPLAYS = (2, 200)  # fewest and most launches of the replayed batch


class Checker:
    """One check of one subject; `references` caches by shape, set and seed, for the round that shares a seed."""

    def __init__(
        self, runtime: Runtime, libraries: Libraries, job: Check, referee: AnyReferee,
        references: Callable[[Shape, str, int, Callable[[], Reference]], Reference],
    ) -> None:  # fmt: skip
        self.runtime, self.job, self.problem, self.referee = runtime, job, job.problem, referee
        self._references = references
        self._state = ProcessState(runtime)
        self._began = time.monotonic()
        self.library = libraries.load(job.subject.binary_sha256)
        self._passed: list[Comparison] = []
        self._sets: dict[str, None] = {}
        self._notes: dict[str, None] = {}
        self._deterministic = True
        self._shape = job.problem.shapes[0]
        self._set = ""

    def check(self) -> Checked:
        """Run all probes of the depth at every planned shape; raises Ended(WrongAnswer | LaunchFailed)."""
        shapes = [plan.shape for plan in self.job.subject.lowered.plans]
        for shape in shapes:
            self._shape = shape
            self._check_shape(shape)
        agreement = agreed(
            self._passed, input_sets=tuple(self._sets), shapes=tuple(shape.text for shape in shapes),
            deterministic=self._deterministic, notes=tuple(self._notes),
        )  # fmt: skip
        return Checked(agreement, time.monotonic() - self._began)

    def _check_shape(self, shape: Shape) -> None:
        baseline, smoke = self.job.depth == "baseline", self.job.depth == "smoke"
        sets = ("default",) if baseline else sets_of(self.problem)
        values = {name: make_inputs(self.problem, shape, name, self.job.seed) for name in sets}
        with _Case(self, shape, "guarded", 64) as case:
            earlier: dict[str, Outputs] = {}
            for name in sets:
                self._set = name
                twice = smoke or (name == "default" and not baseline)
                found = case.run_twice(values[name]) if twice else case.run_once(values[name])
                self._hold(found, values[name], earlier)
                earlier[name] = found
                if smoke and name == "integers":
                    self._hunt_races(case, values[name], found)
            self._set = "default"
        if baseline:
            return
        with _Case(self, shape, "edge", self.job.subject.lowered.align_bytes) as case:
            found = case.run_once(values["default"])
            self._hold(found, values["default"], {}, "alignment")
            if not case.inouts:
                self._change_element(case, values["default"], found)
            if smoke:
                self._hunt_leaks(case)

    # --- what is held against what ----------------------------------------------------------------------

    def _hold(
        self, found: Outputs, values: Mapping[str, Array], earlier: Mapping[str, Outputs],
        instead: CheckFailure | None = None,
    ) -> None:  # fmt: skip
        """Compare outputs with the reference of the current set; `instead` names a failure by its probe."""
        where, key = self._shape, self._set
        reference = self._references(where, key, self.job.seed, lambda: self.referee.compute(values, where))
        rule = rule_of(key, self.referee.exact, self.referee.written)
        for name, array in found.items():
            result = compare(array, reference.values[name], reference.scales[name], self.problem, rule)
            self._sets[key] = None
            if result.passed:
                self._passed.append(result)
                continue
            failure = instead or failure_of(result, self._set, self.referee.written, self._sets)
            reason = f"{name}{list(result.first_index)} is {result.found}, right is {result.expected:.9g}"
            for before, outputs in earlier.items():
                if array.size > 1 and same_bits(array, outputs[name]) and np.ptp(np.nan_to_num(array)) > 0:
                    failure, reason = "stale", f"{name} is what an earlier call wrote for the inputs of {before}"
            raise self.wrong(failure, f"{reason}; {describe(result)}", result)

    def _change_element(self, case: _Case, values: Mapping[str, Array], before: Outputs) -> None:
        """One input element changes at the same addresses: the output follows, in a lone call and in a batch."""
        element = pick(self.problem, values, np.random.default_rng([self.job.seed % 2**32, 5]))
        if element is None:
            return
        changed = element.after_batch(values, 1)
        found = case.run_once(changed)
        self._hold_changed(found, changed, element, before, "fingerprint", "the output does not follow")
        repeats = int(np.clip(REPLAY_NS // max(case.last_ns, 1), *REPLAYS))
        case.fill(values)
        case.arm.poison(0, {})
        case.arm.run(repeats, touch(element, case.inputs))
        batch = case.outputs()
        last = element.after_batch(values)
        case.look_around(last)
        again = case.run_once(last)
        self._hold_changed(batch, last, element, before, "timed_output", f"{repeats} launches end")
        for name, array in batch.items():
            if not same_bits(array, again[name]) and self.problem.accumulation != "any":
                raise self.wrong("timed_output", f"{name} after {repeats} launches differs from that of a lone one")
        if self.job.depth == "smoke":
            self._spread_of_nan(case, values, element)

    def _hold_changed(
        self, found: Outputs, values: Mapping[str, Array], element: Element, before: Outputs, failure: CheckFailure,
        reason: str,
    ) -> None:  # fmt: skip
        """Hold outputs against the reference of changed inputs, by some rows alone where that is possible."""
        rows = self._rows(found, values, element)
        reference = (
            self.referee.compute(values, self._shape) if rows is None else self.referee.rows(values, self._shape, rows)
        )
        for name, array in found.items():
            mine = array if rows is None else array[rows]
            result = compare(mine, reference.values[name], reference.scales[name], self.problem, "random")
            if not result.passed:
                replayed = same_bits(array, before[name])
                how = "is answered from an earlier call" if replayed else f"is wrong: {describe(result)}"
                raise self.wrong(failure, f"{reason}: {name} {how}", result)

    def _rows(self, found: Outputs, values: Mapping[str, Array], element: Element) -> list[int] | None:
        """Return the rows to look at: the changed one and a few; None where rows cannot be computed alone."""
        count = next(iter(found.values())).shape[0] if self.referee.row_axis else 0
        if not count or element.name != inputs_of(self.problem)[0].name:
            return None
        some = np.random.default_rng(self.job.seed % 2**32).integers(0, count, 7).tolist()
        return sorted({min(element.row(values), count - 1), *some})

    def _spread_of_nan(self, case: _Case, values: Mapping[str, Array], element: Element) -> None:
        """A NaN in one row of the first factor stays in that row of the output."""
        rows = self._rows(case.outputs(), values, element)
        if rows is None:
            return
        clean = case.run_once(values)
        found = case.run_once(element.set_to(NAN_BITS, values))
        for name, array in found.items():
            others = np.arange(array.shape[0]) != element.row(values)
            if not same_bits(array[others], clean[name][others]):
                row = f"row {element.row(values)} of {element.name}"
                raise self.wrong("nan", f"a NaN in {row} shows in other rows of {name}")
            if not np.isnan(array[~others]).any():
                self._notes["NaN inputs do not reach the output"] = None

    def _hunt_races(self, case: _Case, values: Mapping[str, Array], first: Outputs) -> None:
        """Run again and again, in both orders of tasks, with all threads awake: whole numbers stay bit for bit."""
        case.fill(values)
        for repeat in range(RACE_REPEATS):
            case.arm.poison(repeat % 2, case.inouts)
            case.arm.run(1 if case.inouts else RACE_BATCH, backward=repeat % 2 == 1)
            for name, array in case.outputs().items():
                if not same_bits(array, first[name]):
                    count = int(np.count_nonzero(array != first[name]))
                    raise self._not_repeated(case, name, array, f"repeat {repeat + 1} gives {count} other elements")
        case.look_around(values)

    def _not_repeated(self, case: _Case, name: str, array: Array, what: str) -> Ended:
        """Tell a race from a kernel that was right only at first: that one goes on as it is now, in either order."""
        for repeat in range(CERTAIN_REPEATS):
            case.arm.poison(repeat % 2, case.inouts)
            case.arm.run(1 if case.inouts else RACE_BATCH, backward=repeat % 2 == 1)
            if not same_bits(array, case.outputs()[name]):
                return self.wrong("race", f"{what} of {name}, with the order of tasks")
        return self.wrong("timed_output", f"{what} of {name}, and so do all later calls: right only at first")

    def _hunt_leaks(self, case: _Case) -> None:
        """Memory that the process keeps grows in neither of two batches."""
        grown = []
        for _ in range(2):
            before = mapped_bytes(), int(self.runtime.library.cake_heap_bytes())
            case.arm.run(LEAK_CALLS)
            after = mapped_bytes(), int(self.runtime.library.cake_heap_bytes())
            grown.append(max(after[0] - before[0], after[1] - before[1]))
        if min(grown) >= 16 * LEAK_CALLS:
            raise self.wrong("state", f"keeps {min(grown) // LEAK_CALLS} bytes more after each call")

    # --- the ends ---------------------------------------------------------------------------------------

    def look_at_state(self, changed_rounding: bool) -> None:
        """Raise where the process is not as it was before the kernel was loaded."""
        changed = "rounding mode" if changed_rounding else self._state.changed()
        if changed:
            raise self.wrong("state", f"the kernel changed the process: {changed}")

    def differing(self, name: str, first: Array, second: Array, third: Array) -> None:
        """Outputs on two poisons differ: raise as stale, or as a race where the first poison does not repeat."""
        if self.problem.accumulation == "any" and self._set not in EXACT_SETS:
            self._deterministic = False
            return
        count = int(np.count_nonzero(first.view(np.uint8) != second.view(np.uint8)))
        if same_bits(first, third):
            held = f"what outputs or workspaces held before ({count} bytes differ)"
            raise self.wrong("stale", f"{name} depends on {held}")
        raise self.wrong("race", f"{name} differs from run to run ({count} bytes)")

    def wrong(self, failure: CheckFailure, reason: str, result: Comparison | None = None) -> Ended:
        """Return the ending for a failed probe."""
        about = WrongAnswer(
            step="check", reason=reason, failure=failure, input_set=self._set, shape=self._shape.text
        )  # fmt: skip
        if result is None:
            return Ended(about)
        return Ended(
            msgspec.structs.replace(
                about, bad_elements=result.bad_elements, elements=result.elements, first_index=result.first_index,
                expected=_finite(result.expected), found=result.found, max_abs_err=_finite(result.max_abs_err),
                worst_unit=_finite(result.worst_unit),
            )
        )  # fmt: skip


class _Case:
    """Buffers of one layout with the kernel on them; every run is looked at before its outputs are used."""

    def __init__(self, checker: Checker, shape: Shape, layout: Layout, align: int) -> None:
        self.checker = checker
        job = checker.job
        self.inputs = Inputs(checker.runtime, job.problem, shape, layout, align)
        self.arm = Arm(checker.runtime, checker.library, job.subject, job.problem, shape, self.inputs, layout, align)
        name_regions(checker.runtime, self.arm.buffers)
        self.inouts: dict[str, Array] = {}
        self.last_ns = 0

    def __enter__(self) -> _Case:
        return self

    def __exit__(self, *_: object) -> None:
        self.checker.runtime.library.cake_forget_regions()
        self.arm.free()
        self.inputs.free()

    def fill(self, values: Mapping[str, Array]) -> None:
        """Put the values in."""
        self.inputs.fill(values)
        names = [spec.name for spec in inputs_of(self.checker.problem) if spec.role == "inout"]
        self.inouts = {name: values[name] for name in names}

    def run_once(self, values: Mapping[str, Array], poison: int = 0) -> Outputs:
        """Run on one poison; raises Ended for guards, inputs, process state and elements that were not written."""
        self.fill(values)
        return self._written(self._run(values, poison), None)

    def run_twice(self, values: Mapping[str, Array]) -> Outputs:
        """Run on both poisons; raises Ended where the outputs differ, too."""
        self.fill(values)
        first, second = self._run(values, 0), self._run(values, 1)
        self._written(first, second)
        for name, array in first.items():
            if not same_bits(array, second[name]):
                self.checker.differing(name, array, second[name], self._run(values, 0)[name])
        return first

    def outputs(self) -> Outputs:
        """Copy what the outputs hold."""
        return {name: buffer.array.copy() for name, buffer in self.arm.outputs.items()}

    def look_around(self, values: Mapping[str, Array]) -> None:
        """Raise Ended where guards or inputs were written."""
        for buffer in self.arm.buffers:
            broken = buffer.broken_guard()
            if broken:
                raise self.checker.wrong("guard", broken)
        for name, buffer in self.inputs.buffers.items():
            if not same_bits(buffer.array, values[name]):
                count = int(np.count_nonzero(buffer.array.view(np.uint8) != values[name].view(np.uint8)))
                raise self.checker.wrong("inputs_changed", f"{count} bytes of {name} were changed")

    def _run(self, values: Mapping[str, Array], poison: int) -> Outputs:
        self.arm.poison(poison, self.inouts)
        before = mapped_bytes()
        ran = self.arm.run()
        kept = mapped_bytes() - before
        found = self.outputs()  # at once: what comes later does not count
        self.last_ns = ran.ns
        self.checker.look_at_state(ran.state_changed)
        if kept > MOST_KEPT_BYTES:
            raise self.checker.wrong("state", f"keeps {kept >> 20} MB after one call")
        self.look_around(values)
        return found

    def _written(self, first: Outputs, second: Outputs | None) -> Outputs:
        """Raise Ended where elements still hold the poison (both poisons, where both were run)."""
        for name, array in first.items():
            if name in self.inouts or array.dtype.itemsize % 4 or not array.size:
                continue
            left = array.reshape(-1).view(np.uint32) == POISONS[0]
            if second is not None:
                left &= second[name].reshape(-1).view(np.uint32) == POISONS[1]
            count = int(np.count_nonzero(left)) // (array.dtype.itemsize // 4)
            if count:
                first_left = int(np.argmax(left)) // (array.dtype.itemsize // 4)
                index = [int(i) for i in np.unravel_index(first_left, array.shape)]
                some = f"{count} of {array.size} elements"
                raise self.checker.wrong("unwritten", f"{some} of {name} were not written, {index} first")
        return first


def same_bits(first: Array, second: Array) -> bool:
    """Say whether two arrays hold the same bytes."""
    return np.array_equal(np.ascontiguousarray(first).view(np.uint8), np.ascontiguousarray(second).view(np.uint8))


def _finite(value: float | None) -> float | None:
    """Leave out what JSON cannot hold."""
    return value if value is not None and math.isfinite(value) else None
