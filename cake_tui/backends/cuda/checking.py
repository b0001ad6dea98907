"""Checks a kernel on the device: input sets against the reference, poisons, guards, replays, races, what it keeps.

A probe that fails raises Ended(WrongAnswer) with a named reason; the kernel always runs before its reference
is computed, and on copies of the inputs.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from typing import Any

import cupy
import msgspec
import numpy as np

from cake_tui.backends._bounds import Comparison, agreed, describe, failure_of, rule_of
from cake_tui.backends._element import NAN_BITS
from cake_tui.backends._inputs import DTYPES, EXACT_SETS, sets_of
from cake_tui.backends.cuda.case import Case, Outputs, compare_on_device
from cake_tui.backends.cuda.first import AnyReferee
from cake_tui.backends.cuda.memory import DTYPE_BYTES, LINE_BYTES, WORD_BYTES, Buffer, Copy
from cake_tui.backends.cuda.subject import Gpu
from cake_tui.backends.cuda.vault import Values, Vault, dense
from cake_tui.errors import Ended
from cake_tui.ir.families import inputs_of
from cake_tui.model.jobs import Check, Checked, binary_path
from cake_tui.model.outcome import CheckFailure, WrongAnswer
from cake_tui.model.problem import Shape

RACE_REPEATS = 20
CERTAIN_REPEATS = 8
RACE_BATCH = 3
NOISE_BYTES = 32 << 20  # written beside every second repeat, so that blocks meet in other orders
LEAK_CALLS = 10
REPLAY_US = 20_000.0
REPLAYS = (2, 200)  # fewest and most launches of the replayed batch
FEW_ROWS = 7
TENSOR_INSTRUCTIONS = re.compile(r"\b(?:mma\.sync|wgmma\.mma|wmma\.mma|tcgen05\.mma|mma_sync)\b")


class Checker:
    """One check of one subject; the vault keeps inputs and references for the round that shares a seed."""

    def __init__(self, gpu: Gpu, vault: Vault, job: Check, referee: AnyReferee) -> None:
        self.gpu, self.vault, self.job, self.problem, self.referee = gpu, vault, job, job.problem, referee
        self._began = time.monotonic()
        self._passed: list[Comparison] = []
        self._sets: dict[str, None] = {}
        self._notes: dict[str, None] = {}
        self._deterministic = True
        self._shape = job.problem.shapes[0]
        self._set = ""

    def check(self) -> Checked:
        """Run all probes of the depth at every planned shape; raises Ended(WrongAnswer | LaunchFailed)."""
        lowered = self.job.subject.lowered
        if self.problem.precision == "strict" and (found := TENSOR_INSTRUCTIONS.search(lowered.source)):
            raise self.wrong("precision", f"uses tensor instructions ({found[0]}), which precision = strict refuses")
        shapes = [plan.shape for plan in lowered.plans]
        for shape in shapes:
            self._shape = shape
            self._check_shape(shape)
        if self.vault.damaged():
            raise self.wrong("guard", "memory far from its buffers was written")
        agreement = agreed(
            self._passed, input_sets=tuple(self._sets), shapes=tuple(shape.text for shape in shapes),
            deterministic=self._deterministic, notes=tuple(self._notes),
        )  # fmt: skip
        return Checked(agreement, time.monotonic() - self._began)

    def _check_shape(self, shape: Shape) -> None:
        baseline, smoke = self.job.depth == "baseline", self.job.depth == "smoke"
        sets = ("default",) if baseline else sets_of(self.problem)
        self.vault.prepare([shape], sets, self.job.seed)
        with Case(self, shape, LINE_BYTES) as case:
            earlier: dict[str, Outputs] = {}
            for name in sets:
                self._set = name
                values = self.vault.inputs(shape, name, self.job.seed)
                twice = smoke or (name == "default" and not baseline)
                found = case.run_twice(values) if twice else case.run_once(values)
                self._hold(found, values, earlier)
                earlier[name] = found
                if smoke and name == "integers":
                    self._hunt_races(case, values, found)
            self._set = "default"
        if baseline:
            return
        with Case(self, shape, self.job.subject.lowered.align_bytes) as case:
            values = self.vault.inputs(shape, "default", self.job.seed)
            found = case.run_once(values)
            self._hold(found, values, {}, "alignment")
            if not case.inouts:
                self._change_element(case, values, found)
            if smoke:
                self._hunt_leaks(case)

    # --- what is held against what ----------------------------------------------------------------------

    def _hold(
        self, found: Outputs, values: Values, earlier: Mapping[str, Outputs], instead: CheckFailure | None = None
    ) -> None:
        """Compare outputs with the reference of the current set; `instead` names a failure by its probe."""
        where, key = self._shape, self._set
        reference = self.vault.reference(
            where, key, self.job.seed, lambda: self.referee.compute(values.arrays, where)
        )  # fmt: skip
        rule = rule_of(key, self.referee.exact, self.referee.written)
        for name, one in found.items():
            result = self._compare(one, reference.values[name], reference.scales[name], rule)
            self._sets[key] = None
            if result.passed:
                self._passed.append(result)
                continue
            failure = instead or failure_of(result, key, self.referee.written, self._sets)
            reason = f"{name}{list(result.first_index)} is {result.found}, right is {result.expected:.9g}"
            for before, outputs in earlier.items():
                if one.elements > 1 and one.same_as(outputs[name]) and not self._is_constant(one):
                    failure, reason = "stale", f"{name} is what an earlier call wrote for the inputs of {before}"
            raise self.wrong(failure, f"{reason}; {describe(result)}", result)

    def _compare(self, found: Copy | Buffer, value: Any, scale: Any, rule: Any, rows: Any = None) -> Comparison:
        """Compare on the device; the first bad element is fetched."""
        return compare_on_device(self.gpu, self.problem, found, value, scale, rule, rows)

    def _is_constant(self, one: Copy) -> bool:
        if DTYPE_BYTES[one.dtype] != WORD_BYTES:
            return False
        word = int.from_bytes(self.gpu.download(one.address, WORD_BYTES), "little")
        return self.gpu.probes.unlike_word(one.address, word, one.bytes).count == 0

    def _change_element(self, case: Case, values: Values, before: Outputs) -> None:
        """One input element changes at the same addresses: the output follows, in a lone call and in a batch."""
        element = values.element
        if element is None:
            return
        changed = values.changed(element.bits[1])
        found = case.run_arrays(changed)
        self._hold_changed(found, changed, values, before, "fingerprint", "the output does not follow")
        repeats = int(np.clip(REPLAY_US / max(case.last_us, 1.0), *REPLAYS))
        case.fill(values)
        case.arm.poison(0)
        patterns = element.in_turn(0)
        address = case.inputs.buffers[element.name].address + WORD_BYTES * element.index
        for position in range(repeats):  # the last has the first pattern, however many there are
            bits = patterns[(repeats - 1 - position) % len(patterns)]
            self.gpu.driver.fill32(address, bits, 1, self.gpu.stream)
            case.arm.put()
        self.gpu.finish(self.job.run_limit_s + repeats * case.last_us * 1e-5)
        batch = case.outputs()
        last = values.changed(element.bits[0])
        case.look_around(last)
        again = case.run_arrays(last)
        self._hold_changed(batch, last, values, before, "timed_output", f"{repeats} launches end")
        for name, one in batch.items():
            if self.problem.accumulation != "any" and not one.same_as(again[name]):
                raise self.wrong("timed_output", f"{name} after {repeats} launches differs from that of a lone one")
        if self.job.depth == "smoke":
            self._spread_of_nan(case, values)

    def _hold_changed(
        self, found: Outputs, arrays: Mapping[str, Any], values: Values, before: Outputs, failure: CheckFailure,
        reason: str,
    ) -> None:  # fmt: skip
        """Hold outputs against the reference of changed inputs, by some rows alone where that is possible."""
        rows = self._rows(found, values)
        reference = dense(
            self.referee.compute(arrays, self._shape)
            if rows is None
            else self.referee.rows(arrays, self._shape, cupy.asarray(rows))
        )
        for name, one in found.items():
            result = self._compare(one, reference.values[name], reference.scales[name], "random", rows)
            if not result.passed:
                replayed = one.same_as(before[name])
                how = "is answered from an earlier call" if replayed else f"is wrong: {describe(result)}"
                raise self.wrong(failure, f"{reason}: {name} {how}", result)

    def _rows(self, found: Outputs, values: Values) -> list[int] | None:
        """Return the rows to look at: the changed one and a few; None where rows cannot be computed alone."""
        count = next(iter(found.values())).shape[0] if self.referee.row_axis else 0
        if not count or values.element is None or values.element.name != inputs_of(self.problem)[0].name:
            return None
        some = np.random.default_rng(self.job.seed % 2**32).integers(0, count, FEW_ROWS).tolist()
        return sorted({min(values.row(), count - 1), *some})

    def _spread_of_nan(self, case: Case, values: Values) -> None:
        """A NaN in one row of the first factor stays in that row of the output."""
        clean = case.run_once(values)
        if self._rows(clean, values) is None:
            return
        found = case.run_arrays(values.changed(NAN_BITS))
        row, probes = values.row(), self.gpu.probes
        for name, one in found.items():
            size = one.bytes // one.shape[0]
            other = clean[name].address
            behind = (row + 1) * size
            outside = probes.differing(one.address, other, row * size).count
            outside += probes.differing(one.address + behind, other + behind, one.bytes - behind).count
            if outside:
                raise self.wrong("nan", f"a NaN in row {row} of {values.element.name} shows in other rows of {name}")  # type: ignore[union-attr]
            mine = np.frombuffer(self.gpu.download(one.address + row * size, size), DTYPES[one.dtype])
            if not np.isnan(mine).any():
                self._notes["NaN inputs do not reach the output"] = None

    def _hunt_races(self, case: Case, values: Values, first: Outputs) -> None:
        """Run again and again, every second time beside other traffic: whole numbers stay bit for bit."""
        case.fill(values)
        scratch = self.gpu.memory.take(NOISE_BYTES)
        try:
            for repeat in range(RACE_REPEATS):
                self._run_batch(case, repeat, scratch)
                for name, buffer in case.arm.outputs.items():
                    unlike = first[name].unlike(buffer)
                    if unlike.count:
                        what = f"repeat {repeat + 1} gives {unlike.count} other bytes"
                        raise self._not_repeated(case, name, what, scratch)
        finally:
            self.gpu.memory.give(scratch)
        case.look_around(values.arrays)

    def _run_batch(self, case: Case, repeat: int, scratch: int) -> None:
        case.arm.poison(repeat % 2)
        if repeat % 2:
            self.gpu.driver.fill8(scratch, repeat, NOISE_BYTES, self.gpu.second_stream)
        for _ in range(1 if case.inouts else RACE_BATCH):
            case.arm.put()
        self.gpu.finish(RACE_BATCH * self.job.run_limit_s)

    def _not_repeated(self, case: Case, name: str, what: str, scratch: int) -> Ended:
        """Tell a race from a kernel that was right only at first: that one goes on as it is now."""
        now = Copy(self.gpu.memory, case.arm.outputs[name])
        try:
            for repeat in range(CERTAIN_REPEATS):
                self._run_batch(case, repeat, scratch)
                if not now.same_as(case.arm.outputs[name]):
                    return self.wrong("race", f"{what} of {name}, another time others")
        finally:
            now.free()
        return self.wrong("timed_output", f"{what} of {name}, and so do all later calls: right only at first")

    # --- what it keeps ----------------------------------------------------------------------------------

    def _hunt_leaks(self, case: Case) -> None:
        """The heap that kernels allocate from has as much room after some calls as before."""
        if b"malloc" not in binary_path(self.gpu.store, self.job.subject.binary_sha256).read_bytes():
            return
        before = self.gpu.probes.heap_pieces()
        for _ in range(LEAK_CALLS):
            case.arm.put()
        self.gpu.finish(LEAK_CALLS * self.job.run_limit_s)
        lost = before - self.gpu.probes.heap_pieces()
        if lost > 0:
            raise self.wrong("state", f"keeps {lost * 4096 // LEAK_CALLS} bytes more of the heap after each call")

    # --- the ends ---------------------------------------------------------------------------------------

    def differing(self, name: str, first: Copy, second: Copy, third: Copy) -> None:
        """Outputs on two poisons differ: raise as stale, or as a race where the first poison does not repeat."""
        if self.problem.accumulation == "any" and self._set not in EXACT_SETS:
            self._deterministic = False
            return
        count = first.unlike(second).count
        if not first.same_as(third):
            raise self.wrong("race", f"{name}: equal runs differ, {count} bytes between two of them")
        raise self.wrong("stale", f"{count} bytes of {name} hang on what was in memory before the run")

    def wrong(self, failure: CheckFailure, reason: str, result: Comparison | None = None) -> Ended:
        """Return the ending for a probe that failed."""
        outcome = WrongAnswer(
            step="check", failure=failure, reason=reason, input_set=self._set, shape=self._shape.text
        )  # fmt: skip
        if result is not None:
            outcome = msgspec.structs.replace(
                outcome, bad_elements=result.bad_elements, elements=result.elements, first_index=result.first_index,
                expected=_finite(result.expected), found=result.found, max_abs_err=_finite(result.max_abs_err),
                worst_unit=_finite(result.worst_unit),
            )  # fmt: skip
        return Ended(outcome)


def _finite(value: float | None) -> float | None:
    """Leave out what JSON cannot hold."""
    return value if value is not None and math.isfinite(value) else None
