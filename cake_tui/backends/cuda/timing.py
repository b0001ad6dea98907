"""Times pairs: holder and candidate in ABBA order on fresh buffers, and looks at what the timed launches wrote."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import cupy
import msgspec
import numpy as np

from cake_tui.backends._inputs import inputs_of, outputs_of
from cake_tui.backends.cuda.case import compare_on_device
from cake_tui.backends.cuda.first import AnyReferee, run_elsewhere
from cake_tui.backends.cuda.memory import WORD_BYTES
from cake_tui.backends.cuda.subject import Arm, Gpu, Inputs
from cake_tui.backends.cuda.vault import Values, Vault, dense
from cake_tui.errors import Ended
from cake_tui.model.jobs import Subject, Timed, TimePairs
from cake_tui.model.measure import Clock, Pair, Series
from cake_tui.model.outcome import CheckFailure, Outcome, WrongAnswer
from cake_tui.model.problem import Problem, Shape

Role = Literal["holder", "candidate"]

CHECKED_ROWS = 3
SLOW_US = 50_000.0  # a kernel so slow cannot win: it is spared the second run
MOST_REPEATS = 2000  # launches of a sample; a graph has so many nodes
MOST_COLD_REPEATS = 100
LEAST_US = 500.0  # of a sample, that the device's clock is read well
QUICK_US = 2000.0  # slower kernels need no company: the gap before a launch does not show
COMPANY_US = 100.0  # so long the device is kept at work while the host queues a sample
TRIED_US = 300.0
SEEDS = 4  # of timed inputs: drawing new ones for each series would take longer than the series
MOST_OFFSET = 2048  # lines of 256 bytes that a buffer is moved by
SPACER_BYTES, MOST_SPACERS = 2 << 20, 8  # pages between the buffers of two series


class ArmEnded(Ended):
    """What an arm wrote while it was timed is wrong; `arm` says whose."""

    def __init__(self, outcome: Outcome, arm: str) -> None:
        super().__init__(outcome)
        self.arm = arm


class Sample(msgspec.Struct, frozen=True):
    """One batch: microseconds a launch, and the device's clock meanwhile."""

    us: float
    ghz: float | None


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

    def sample(self, role: Role, repeats: int, launch_us: float, *, first: bool) -> Sample:
        """Run one arm's batch; the changed element changes once more before the last launch."""
        gpu, driver, stream, arm = self.gpu, self.gpu.driver, self.gpu.stream, self.arms[role]
        gpu.arm = role
        if self.values.element is not None:
            self._touch(1 + int(self._random.integers(len(self.values.element.bits) - 1)))
        company = math.ceil(COMPANY_US / launch_us) if launch_us < QUICK_US else int(first)
        for _ in range(company):
            arm.put()
        arm.poison(int(self._random.integers(2)))
        limit_s = self.run_limit_s + 3e-6 * launch_us * (repeats + company)
        if self._flush:
            return self._cold_sample(arm, repeats, limit_s)
        graph = self._graph(role, repeats)
        gpu.probes.stamp(0)
        began, ended = gpu.events(2)
        driver.record(began, stream)
        driver.run_graph(graph, stream)
        driver.record(ended, stream)
        gpu.probes.stamp(1)
        gpu.finish(limit_s)
        return Sample(driver.elapsed_us(began, ended) / repeats, gpu.probes.gigahertz())

    def fingerprint(self, role: Role) -> str:
        """Hash what an arm's last launch wrote."""
        outputs = self.arms[role].outputs.values()
        return "".join(self.gpu.probes.hashed(buffer.address, buffer.bytes) for buffer in outputs)

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

    def _cold_sample(self, arm: Arm, repeats: int, limit_s: float) -> Sample:
        """Write over the last-level cache before each launch; only the launches count."""
        driver, stream = self.gpu.driver, self.gpu.stream
        events = self.gpu.events(2 * repeats)
        self.gpu.probes.stamp(0)
        for position in range(repeats):
            if position == repeats - 1:
                self._touch(0)
            driver.fill8(self._flush, position & 0xFF, self._flush_bytes, stream)
            driver.record(events[2 * position], stream)
            arm.put()
            driver.record(events[2 * position + 1], stream)
        self.gpu.probes.stamp(1)
        self.gpu.finish(limit_s + 1e-3 * repeats)
        spent = [driver.elapsed_us(events[2 * at], events[2 * at + 1]) for at in range(repeats)]
        return Sample(sum(spent) / repeats, self.gpu.probes.gigahertz())

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


def timed_shapes(problem: Problem) -> tuple[Shape, ...]:
    """Return the shapes that a sample runs."""
    return problem.shapes[-1:] if problem.ranking == "last" else problem.shapes


def time_pairs(
    gpu: Gpu, vault: Vault, repeats: Repeats, job: TimePairs, referee: AnyReferee, clock: ReadClock
) -> Timed:
    """Time the pairs of one series; raises ArmEnded for what a timed launch did wrong, Ended for both arms."""
    problem = job.problem
    subjects: dict[Role, Subject] = {"holder": job.holder, "candidate": job.candidate}
    lanes: list[Lane] = []
    try:
        for position, shape in enumerate(timed_shapes(problem)):
            lanes.append(Lane(gpu, vault, problem, shape, subjects, job.seed + position, job.run_limit_s))
        launch_us = {
            (role, lane.shape): repeats.launch_us(lane, role, subject)
            for lane in lanes
            for role, subject in subjects.items()
        }
        counts = {
            (role, lane.shape): lane.repeats(launch_us[role, lane.shape], job.sample_ms)
            for lane in lanes
            for role in subjects
        }
        pairs = []
        before = clock()
        for position in range(max(job.pairs, 1)):
            holder_first = position % 2 == job.seed % 2
            taken: dict[Role, list[Sample]] = {"holder": [], "candidate": []}
            order: tuple[Role, Role] = ("holder", "candidate") if holder_first else ("candidate", "holder")
            for lane in lanes:
                for role in order:
                    key = (role, lane.shape)
                    taken[role].append(
                        lane.sample(role, counts[key], launch_us[key], first=position == 0)
                    )  # fmt: skip
            pairs.append(_pair(problem, taken, holder_first))
        after = clock()
        for lane in lanes:
            lane.judge_memory()
            for role in subjects:
                _judge(lane, role, referee, launch_us[role, lane.shape])
        series = Series(
            pairs=tuple(pairs), before=before, after=after,
            output_fingerprint="+".join(lane.fingerprint("candidate") for lane in lanes),
            holder_fingerprint="+".join(lane.fingerprint("holder") for lane in lanes),
        )  # fmt: skip
    except Ended:
        _free(lanes)
        raise
    _free(lanes)  # not after other errors: the process is of no use any more and must not wait for the device
    return Timed(series)


class ReadClock:
    """Reads the device's clocks right before and right after a series; gives nothing where no monitor watches it."""

    def __init__(self, monitor: Any) -> None:
        self._read = getattr(monitor, "read_device", None)

    def __call__(self) -> Clock | None:
        """Take one reading."""
        return self._read() if self._read is not None else None


def _free(lanes: list[Lane]) -> None:
    for lane in lanes:
        lane.free()


def _pair(problem: Problem, taken: Mapping[Role, list[Sample]], holder_first: bool) -> Pair:
    """Combine the samples of all shapes; the clock is that of the last one."""
    holder, candidate = taken["holder"], taken["candidate"]
    return Pair(
        problem.ranked([one.us for one in holder]), problem.ranked([one.us for one in candidate]), holder_first,
        holder[-1].ghz, candidate[-1].ghz,
    )  # fmt: skip


def _judge(lane: Lane, role: Role, referee: AnyReferee, launch_us: float) -> None:
    """Judge what the last timed launch of an arm wrote; raises ArmEnded."""
    try:
        lane.judge(role, referee, launch_us)
    except Ended as ended:
        raise ArmEnded(ended.outcome, role) from None
