"""Times pairs: holder and candidate in ABBA order on fresh buffers, and looks at what the timed launches wrote."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cake_tui.backends._bounds import compare
from cake_tui.backends._element import pick
from cake_tui.backends._inputs import make_inputs
from cake_tui.backends.cpu.clock import read_clock
from cake_tui.backends.cpu.first import AnyReferee, run_elsewhere
from cake_tui.backends.cpu.memory import Array, name_regions
from cake_tui.backends.cpu.runtime import Ran, Runtime
from cake_tui.backends.cpu.state import ProcessState
from cake_tui.backends.cpu.subject import Arm, Inputs, Libraries, touch
from cake_tui.errors import Ended
from cake_tui.ir.families import inputs_of, outputs_of
from cake_tui.model.jobs import Subject, Timed, TimePairs
from cake_tui.model.measure import Pair, Series
from cake_tui.model.outcome import CheckFailure, Outcome, WrongAnswer
from cake_tui.model.problem import Problem, Shape

CHECKED_ROWS = 3
SLOW_NS = 50_000_000
MOST_REPEATS = 1_000_000


class ArmEnded(Ended):
    """What an arm wrote while it was timed is wrong; `arm` says whose."""

    def __init__(self, outcome: Outcome, arm: str) -> None:
        super().__init__(outcome)
        self.arm = arm


class Bench:
    """One shape's buffers for one series: shared inputs, one arm a subject, and the element that changes."""

    def __init__(
        self, runtime: Runtime, libraries: Libraries, problem: Problem, shape: Shape, subjects: Mapping[str, Subject],
        seed: int,
    ) -> None:  # fmt: skip
        self.runtime, self.libraries, self.problem, self.shape = runtime, libraries, problem, shape
        self.values = make_inputs(problem, shape, "default", seed)
        self.inouts = {spec.name: self.values[spec.name] for spec in inputs_of(problem) if spec.role == "inout"}
        self.inputs = Inputs(runtime, problem, shape, "guarded", 64)
        self.inputs.fill(self.values)
        self.arms: dict[str, Arm] = {}
        self._subjects = subjects
        for name, subject in subjects.items():
            library = libraries.load(subject.binary_sha256)
            self.arms[name] = Arm(runtime, library, subject, problem, shape, self.inputs, "guarded", 64)
        name_regions(runtime, [buffer for arm in self.arms.values() for buffer in arm.buffers])
        self.element = pick(problem, self.values, np.random.default_rng([seed % 2**32, 77]))
        self.launch_ns: dict[str, int] = {}  # of each arm's last sample
        for arm in self.arms.values():
            arm.poison(0, self.inouts)

    def sample(self, name: str, repeats: int, to_come: int = 0) -> Ran:
        """Run one arm's batch; the changed element ends other than before, and as `judge` expects with none to come."""
        changes = None if self.element is None else touch(self.element, self.inputs, to_come)
        ran = self.arms[name].run(repeats, changes, cold=self.problem.cache == "cold")
        self.launch_ns[name] = ran.ns // repeats
        return ran

    def judge_memory(self) -> None:
        """Raise Ended(WrongAnswer) where guards or inputs changed."""
        for arm in self.arms.values():
            for buffer in arm.buffers:
                broken = buffer.broken_guard()
                if broken:
                    raise self.wrong("guard", broken)
        expected = self.values_after()
        for name, buffer in self.inputs.buffers.items():
            if not np.array_equal(buffer.array.view(np.uint8), expected[name].view(np.uint8)):
                raise self.wrong("inputs_changed", f"{name} was changed while it was timed")

    def judge(self, name: str, referee: AnyReferee) -> None:
        """Hold an arm's last timed launch against the reference, a candidate's against an untimed one elsewhere too.

        Raises Ended(WrongAnswer): rows that do not follow the element that changed, outputs unlike those of the
        same kernel on a copy of the inputs. Kernels so slow that they cannot win are spared the second run.
        """
        if self.inouts:
            return  # outputs of repeated launches on their own results have no single right value
        values = self.values_after()
        found = {output: buffer.array.copy() for output, buffer in self.arms[name].outputs.items()}
        self._compare_rows(found, values, referee)
        if name == "candidate" and self.launch_ns.get(name, 0) < SLOW_NS:
            again = run_elsewhere(self.runtime, self.libraries, self.problem, self.shape, self._subjects[name], values)
            self._compare_again(found, again, values, referee)

    def values_after(self) -> Mapping[str, Array]:
        """Return the inputs as the last sample leaves them: one element changed."""
        return self.values if self.element is None else self.element.after_batch(self.values)

    def free(self) -> None:
        """Give all memory back."""
        for arm in self.arms.values():
            arm.free()
        self.inputs.free()

    def _compare_rows(self, found: Mapping[str, Array], values: Mapping[str, Array], referee: AnyReferee) -> None:
        """Hold some rows, the changed one among them, against the float64 reference."""
        output = outputs_of(self.problem)[0].name
        if referee.row_axis is None:
            reference, mine = referee.compute(values, self.shape), found
        else:
            count = found[output].shape[0]
            rows = {*np.random.default_rng(count).integers(0, count, CHECKED_ROWS).tolist()} if count else set()
            if self.element is not None and self.element.name == inputs_of(self.problem)[0].name and count:
                rows.add(min(self.element.row(self.values), count - 1))
            picked = sorted(rows)
            reference, mine = referee.rows(values, self.shape, picked), {output: found[output][picked]}
        for name, value in reference.values.items():
            result = compare(mine[name], value, reference.scales[name], self.problem, "random")
            if not result.passed:
                raise self.wrong(
                    "timed_output", f"a timed launch wrote {result.found} where {result.expected:.6g} is right",
                    bad=result.bad_elements, elements=result.elements,
                )  # fmt: skip

    def _compare_again(
        self, found: Mapping[str, Array], again: Mapping[str, Array], values: Mapping[str, Array], referee: AnyReferee
    ) -> None:
        """Outputs of timed and untimed launch are bit-equal, or both right where the order of sums is free."""
        for name, array in found.items():
            unlike = int(np.count_nonzero(array.view(np.uint8) != again[name].view(np.uint8)))
            if not unlike:
                continue
            reference = referee.compute(values, self.shape)
            for one in (found, again):
                if not compare(
                    one[name], reference.values[name], reference.scales[name], self.problem, "random"
                ).passed:
                    raise self.wrong("timed_output", f"timed and untimed launch differ in {unlike} bytes of {name}")

    def wrong(self, failure: CheckFailure, reason: str, bad: int = 0, elements: int = 0) -> Ended:
        """Return the ending for what a timed launch did."""
        return Ended(
            WrongAnswer(
                step="measure", failure=failure, reason=reason, input_set="default", shape=self.shape.text,
                bad_elements=bad, elements=elements,
            )
        )  # fmt: skip


def timed_shapes(problem: Problem) -> tuple[Shape, ...]:
    """Return the shapes that a sample runs."""
    return problem.shapes[-1:] if problem.ranking == "last" else problem.shapes


def repeats_for(run: Callable[[int], int], sample_ms: float) -> int:
    """Return the count for which ``run(count)``, in nanoseconds, lasts `sample_ms` or longer.

    A run that seems long enough is taken again, and the shorter one counts: one that lost the processor for a
    while would make every sample too short.
    """
    wanted = sample_ms * 1e6
    count, ns = 1, run(1)
    while True:
        for _ in range(2 if wanted <= ns < 20 * wanted else 0):
            ns = min(ns, run(count))
        if ns >= wanted or count >= MOST_REPEATS:
            return count
        # At most tenfold, since the first launches are slow; a little more than asked for.
        count = min(max(count + 1, math.ceil(count * min(10.0, 1.1 * wanted / max(ns, 1)))), MOST_REPEATS)
        ns = run(count)


class Repeats:
    """How many launches make a sample: measured once a subject and shape, then fixed."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], int] = {}

    def of(self, bench: Bench, name: str, subject: Subject, sample_ms: float) -> int:
        """Return the count for which a batch lasts `sample_ms` or longer."""
        key = (subject.binary_sha256, bench.shape, bench.problem.cache, sample_ms)
        if key not in self._known:
            self._known[key] = repeats_for(lambda count: bench.sample(name, count).ns, sample_ms)
        return self._known[key]


def time_pairs(runtime: Runtime, libraries: Libraries, repeats: Repeats, job: TimePairs, referee: AnyReferee) -> Timed:
    """Do the job; raises Ended where what the candidate wrote while timed is wrong."""
    problem = job.problem
    state = ProcessState(runtime)
    rounding_changed = False
    subjects = {"holder": job.holder, "candidate": job.candidate}
    benches = [
        Bench(runtime, libraries, problem, shape, subjects, job.seed + i)
        for i, shape in enumerate(timed_shapes(problem))
    ]
    try:
        counts = {
            (name, bench.shape): repeats.of(bench, name, subject, job.sample_ms)
            for bench in benches
            for name, subject in subjects.items()
        }
        pairs = []
        busy_max = busy_mean = 0
        before = read_clock(runtime)
        for position in range(max(job.pairs, 1)):
            holder_first = position % 2 == job.seed % 2
            times: dict[str, list[float]] = {"holder": [], "candidate": []}
            for bench in benches:
                for name in ("holder", "candidate") if holder_first else ("candidate", "holder"):
                    count = counts[name, bench.shape]
                    ran = bench.sample(name, count, job.pairs - 1 - position)
                    times[name].append(ran.ns / count / 1e3)
                    rounding_changed = rounding_changed or ran.state_changed
                    if name == "candidate":
                        busy_max, busy_mean = busy_max + ran.busy_max_ns, busy_mean + ran.busy_mean_ns
            pairs.append(Pair(problem.ranked(times["holder"]), problem.ranked(times["candidate"]), holder_first))
        after = read_clock(runtime)
        changed = "rounding mode" if rounding_changed else state.changed()
        for bench in benches:
            if changed:
                raise bench.wrong("state", f"the process was changed while kernels were timed: {changed}")
            _judge(bench, referee)
        return Timed(
            Series(
                pairs=tuple(pairs), before=before, after=after,
                imbalance_pct=100.0 * (busy_max / busy_mean - 1.0) if busy_mean else None,
            )
        )  # fmt: skip
    finally:
        for bench in benches:
            bench.free()


def _judge(bench: Bench, referee: AnyReferee) -> None:
    """Judge what the last timed launches wrote; raises ArmEnded."""
    bench.judge_memory()
    for name in bench.arms:
        try:
            bench.judge(name, referee)
        except Ended as ended:
            raise ArmEnded(ended.outcome, name) from None
