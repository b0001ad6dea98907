"""One shape's buffers for one series: batches of launches on the stream, and a look at what the last ones wrote."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import cupy
import msgspec
import numpy as np

from cake_tui.backends.cuda.case import compare_on_device
from cake_tui.backends.cuda.first import AnyReferee, run_elsewhere
from cake_tui.backends.cuda.memory import WORD_BYTES
from cake_tui.backends.cuda.subject import Arm, Gpu, Inputs
from cake_tui.backends.cuda.vault import Values, Vault, dense
from cake_tui.errors import Ended
from cake_tui.ir.families import inputs_of, outputs_of
from cake_tui.model.jobs import Subject
from cake_tui.model.outcome import CheckFailure, Outcome, WrongAnswer
from cake_tui.model.problem import Problem, Shape

Role = Literal["holder", "candidate"]

CHECKED_ROWS = 3
SLOW_US = 50_000.0  # a kernel so slow cannot win: it is spared the second run
MOST_REPEATS = 2000  # launches of a sample; a graph has so many nodes
MOST_COLD_REPEATS = 100
LEAST_US = 500.0  # of a sample, that the device's clock is read well
# The clock follows the load within milliseconds: the device is at work for so many samples' time before the first
# one, and has no rest between them.
LEAD_SAMPLES = 5.0
TRIED_US = 300.0
SEEDS = 4  # of timed inputs: drawing new ones for each series would take longer than the series
MOST_OFFSET = 2048  # lines of 256 bytes that a buffer is moved by
SPACER_BYTES, MOST_SPACERS = 2 << 20, 8  # pages between the buffers of two series


class ArmEnded(Ended):
    """What an arm wrote while it was timed is wrong; `arm` says whose."""

    def __init__(self, outcome: Outcome, arm: str) -> None:
        super().__init__(outcome)
        self.arm = arm


class Queued(msgspec.Struct, frozen=True):
    """A batch on the stream: its events in pairs, its first stamp, how many launches it is."""

    role: Role
    events: tuple[int, ...]
    stamp: int
    repeats: int


class Repeats:
    """How many launches make a sample and how long one takes: measured once a subject and shape, then fixed."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, Shape, str], float] = {}

    def launch_us(self, lane: Lane, role: Role, subject: Subject) -> float:
        """Return about how long one launch takes; raises ArmEnded where it is refused."""
        key = (subject.lowered.sha256, lane.shape, lane.problem.cache)
        if key not in self._known:
            try:
                self._known[key] = lane.try_out(role)
            except Ended as ended:
                raise ArmEnded(ended.outcome, role) from None
        return self._known[key]


class Lane:
    """One shape's buffers for one series: shared inputs, one arm a subject, and the element that changes."""

    def __init__(
        self, gpu: Gpu, vault: Vault, problem: Problem, shape: Shape, subjects: Mapping[Role, Subject], seed: int,
        run_limit_s: float,
    ) -> None:  # fmt: skip
        self.gpu, self.vault, self.problem, self.shape = gpu, vault, problem, shape
        self.seed = seed % SEEDS
        self.run_limit_s = run_limit_s
        self._subjects = subjects
        self._random = np.random.default_rng(seed % 2**32)
        self._graphs: dict[tuple[Role, int], int] = {}
        self._flush = self._flush_bytes = 0
        self.arms: dict[Role, Arm] = {}
        self.values: Values = vault.inputs(shape, "default", self.seed)
        if problem.cache == "cold":
            self._flush_bytes = 2 * gpu.l2_bytes
            self._flush = gpu.memory.take(self._flush_bytes)
        spacer = gpu.memory.take(SPACER_BYTES * int(self._random.integers(1, MOST_SPACERS)))
        self.inputs = Inputs(gpu, problem, shape, self.values.masters, offset=self._offset)
        for role, subject in subjects.items():
            try:
                self.arms[role] = Arm(gpu, subject, problem, shape, self.inputs, offset=self._offset)
            except Ended as ended:
                self.free()
                raise ArmEnded(ended.outcome, role) from None
        gpu.memory.give(spacer)

    def try_out(self, role: Role) -> float:
        """Return microseconds a launch, roughly, of a kernel that was not timed before; it is warm after that."""
        count, us = 1, 0.0
        self._launches(role, 1)
        while True:
            us = self._launches(role, count)
            if us >= TRIED_US or count >= MOST_REPEATS:
                return us / count
            count = min(count * 4, MOST_REPEATS)

    def repeats(self, launch_us: float, sample_ms: float) -> int:
        """Return how many launches make a sample; a few more now and then, so that no kernel can know."""
        most = MOST_COLD_REPEATS if self.problem.cache == "cold" else MOST_REPEATS
        count = math.ceil(max(sample_ms * 1e3, LEAST_US) / max(launch_us, 0.1))
        return min(count + int(self._random.integers(0, 1 + count // 16)), most)

    def lead(self, counts: Mapping[Role, int], launch_us: Mapping[Role, float], sample_ms: float) -> None:
        """Put work of all arms in turn on the stream until clock and caches are as they stay."""
        spent = 0.0
        while spent < LEAD_SAMPLES * sample_ms * 1e3:
            for role, count in counts.items():
                if self._flush:
                    self.arms[role].put()
                else:
                    self.gpu.driver.run_graph(self._graph(role, count), self.gpu.stream)
                spent += launch_us[role] * (1 if self._flush else count)

    def queue(self, role: Role, repeats: int, number: int) -> Queued:
        """Put one arm's batch on the stream, the `number`-th since it was empty.

        The changed element changes once more before the batch's last launch.
        """
        gpu, driver, stream, arm = self.gpu, self.gpu.driver, self.gpu.stream, self.arms[role]
        if self.values.element is not None:
            self._touch(1 + int(self._random.integers(len(self.values.element.bits) - 1)))
        arm.poison(int(self._random.integers(2)))
        taken = gpu.events_taken
        count = 2 * repeats if self._flush else 2
        events = tuple(gpu.events(taken + count)[taken:])
        gpu.events_taken = taken + count
        graph = None if self._flush else self._graph(role, repeats)
        gpu.probes.stamp(2 * number)
        if graph is None:
            self._queue_cold(arm, repeats, events)
        else:
            driver.record(events[0], stream)
            driver.run_graph(graph, stream)
            driver.record(events[1], stream)
        gpu.probes.stamp(2 * number + 1)
        return Queued(role, events, 2 * number, repeats)

    def judge_memory(self) -> None:
        """Raise Ended(WrongAnswer) where guards, inputs or what lies elsewhere changed."""
        for arm in self.arms.values():
            for _, buffer in arm.named():
                broken = buffer.broken_guard()
                if broken:
                    raise self.wrong("guard", broken)
        expected = self._arrays_after()
        for name, buffer in self.inputs.buffers.items():
            if self.gpu.probes.differing(buffer.address, int(expected[name].data.ptr), buffer.bytes).count:
                raise self.wrong("inputs_changed", f"{name} was changed while it was timed")
        if self.vault.damaged(self.seed):
            raise self.wrong("guard", "memory far from its buffers was written while it was timed")

    def judge(self, role: Role, referee: AnyReferee, launch_us: float) -> None:
        """Hold an arm's last timed launch against the reference, a candidate's against an untimed one elsewhere too.

        Raises Ended(WrongAnswer): rows that do not follow the element that changed, outputs unlike those of the
        same kernel on a copy of the inputs.
        """
        if any(spec.role == "inout" for spec in self.problem.buffers):
            return  # outputs of repeated launches on their own results have no single right value
        self.gpu.arm = role
        arrays = self._arrays_after()
        self._compare_rows(role, arrays, referee)
        if role != "candidate" or launch_us >= SLOW_US:
            return
        again = run_elsewhere(
            self.gpu, self.problem, self.shape, self._subjects[role], arrays, self.run_limit_s
        )  # fmt: skip
        try:
            for name, copy in again.items():
                unlike = copy.unlike(self.arms[role].outputs[name]).count
                if unlike and not self._both_right(role, name, copy, arrays, referee):
                    raise self.wrong("timed_output", f"timed and untimed launch differ in {unlike} bytes of {name}")
        finally:
            for copy in again.values():
                copy.free()

    def free(self) -> None:
        """Give all memory back."""
        for graph in self._graphs.values():
            self.gpu.driver.forget_graph(graph)
        for arm in self.arms.values():
            arm.free()
        self.inputs.free()
        if self._flush:
            self.gpu.memory.give(self._flush)

    def wrong(self, failure: CheckFailure, reason: str, bad: int = 0, elements: int = 0) -> Ended:
        """Return the ending for what a timed launch did."""
        return Ended(
            WrongAnswer(
                step="measure", failure=failure, reason=reason, input_set="default", shape=self.shape.text,
                bad_elements=bad, elements=elements,
            )
        )  # fmt: skip

    # --- the parts of the above -------------------------------------------------------------------------

    def _offset(self) -> int:
        return int(self._random.integers(MOST_OFFSET))

    def _touch(self, which: int) -> None:
        """Give the element that changes one of its patterns; 0 is the one that a sample ends with."""
        element = self.values.element
        if element is not None:
            address = self.inputs.buffers[element.name].address + WORD_BYTES * element.index
            self.gpu.driver.fill32(address, element.bits[which], 1, self.gpu.stream)

    def _arrays_after(self) -> Mapping[str, Any]:
        """Return the inputs as a sample leaves them."""
        element = self.values.element
        return self.values.arrays if element is None else self.values.changed(element.bits[0])

    def _launches(self, role: Role, count: int) -> float:
        """Run launches one after the other and return microseconds of all."""
        self.gpu.arm = role
        driver, stream = self.gpu.driver, self.gpu.stream
        began, ended = self.gpu.events(2)
        driver.record(began, stream)
        for _ in range(count):
            self.arms[role].put()
        driver.record(ended, stream)
        self.gpu.finish(self.run_limit_s if count == 1 else self.run_limit_s + count * 1e-3)
        return driver.elapsed_us(began, ended)

    def _graph(self, role: Role, repeats: int) -> int:
        """Return the launches of a sample as a graph: no gap between them is the host's."""
        key = (role, repeats)
        if key not in self._graphs:
            driver, stream = self.gpu.driver, self.gpu.stream
            driver.begin_capture(stream)
            for _ in range(repeats - 1):
                self.arms[role].put()
            self._touch(0)
            self.arms[role].put()
            self._graphs[key] = driver.end_capture(stream)
            driver.prepare_graph(self._graphs[key], stream)
        return self._graphs[key]

    def _queue_cold(self, arm: Arm, repeats: int, events: Sequence[int]) -> None:
        """Write over the last-level cache before each launch; only the launches lie between two events."""
        driver, stream = self.gpu.driver, self.gpu.stream
        for position in range(repeats):
            if position == repeats - 1:
                self._touch(0)
            driver.fill8(self._flush, position & 0xFF, self._flush_bytes, stream)
            driver.record(events[2 * position], stream)
            arm.put()
            driver.record(events[2 * position + 1], stream)

    def _compare_rows(self, role: Role, arrays: Mapping[str, Any], referee: AnyReferee) -> None:
        """Hold some rows, the changed one among them, against the float64 reference."""
        output = outputs_of(self.problem)[0].name
        rows: list[int] | None = None
        count = self.arms[role].outputs[output].shape[0] if referee.row_axis is not None else 0
        if count:
            picked = {*self._random.integers(0, count, CHECKED_ROWS).tolist()}
            if self.values.element is not None and self.values.element.name == inputs_of(self.problem)[0].name:
                picked.add(min(self.values.row(), count - 1))
            rows = sorted(picked)
        reference = dense(
            referee.compute(arrays, self.shape)
            if rows is None
            else referee.rows(arrays, self.shape, cupy.asarray(rows))
        )
        for name, value in reference.values.items():
            buffer = self.arms[role].outputs[name]
            result = compare_on_device(
                self.gpu, self.problem, buffer, value, reference.scales[name], "random", rows
            )  # fmt: skip
            if not result.passed:
                raise self.wrong(
                    "timed_output", f"a timed launch wrote {result.found} where {result.expected:.6g} is right",
                    bad=result.bad_elements, elements=result.elements,
                )  # fmt: skip

    def _both_right(self, role: Role, name: str, copy: Any, arrays: Mapping[str, Any], referee: AnyReferee) -> bool:
        """Where the order of sums is free, outputs may differ as long as both are right."""
        reference = dense(referee.compute(arrays, self.shape))
        return all(
            compare_on_device(
                self.gpu, self.problem, one, reference.values[name], reference.scales[name], "random"
            ).passed
            for one in (copy, self.arms[role].outputs[name])
        )  # fmt: skip
