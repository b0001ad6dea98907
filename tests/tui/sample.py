"""Writes a session folder that looks like a real CPU run, from events alone; deterministic, no engine, no compiler."""

from __future__ import annotations

import hashlib
import json
import math
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from cake_tui.config import Settings
from cake_tui.model import event as ev
from cake_tui.model.device import Device
from cake_tui.model.facts import Agreement, Profile, StaticFacts
from cake_tui.model.finding import Finding
from cake_tui.model.measure import GateResult, Stale
from cake_tui.model.move import Move, Proposal
from cake_tui.model.outcome import (
    BuildFailed,
    Crashed,
    Measured,
    Outcome,
    Rejected,
    Repeated,
    Screened,
    TimedOut,
    WrongAnswer,
)
from cake_tui.model.schedule import Schedule
from cake_tui.tui.bridge import Now
from tests.matmul import MATMUL

BOOT = "0000-sample-boot"
START = datetime(2026, 11, 29, 9, 0, 0, tzinfo=UTC)
BASELINE_US = 180_000.0
NUMPY_US = 1_750.0

PROBLEM = msgspec.structs.replace(MATMUL, peers=("numpy",))
DEVICE = Device(
    kind="cpu", target="c", name="Sample CPU, 2 cores", uuid="cpu:sample", arch="x86-64-v4", cores=2,
    vector_bytes=64, vector_registers=32, l1_bytes=32768, l2_bytes=1 << 20, l3_bytes=32 << 20,
)  # fmt: skip
# (text, arguments, structure it leads to or None)
ACTIONS: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = (
    ("apply_register_block", (("m", 8), ("n", 2))), ("apply_register_block", (("m", 12), ("n", 2))),
    ("apply_tiling", (("tile_size", 256),)), ("apply_tiling", (("tile_size", 128),)),
    ("apply_unroll", (("factor", 4),)), ("apply_unroll", (("factor", 8),)),
    ("apply_vectorize", (("vec_width", 16),)), ("apply_vectorize", (("vec_width", 8),)),
    ("change_block_config", (("x", 4), ("y", 2))), ("apply_shared_memory_load", ()),
    ("avoid_bank_conflict", (("pad", 16),)), ("split_k", (("parts", 2),)),
)  # fmt: skip

SOURCE = """/* {kernel}: {structure}, candidate {number} */
#include <stddef.h>

#define BK {block_k}
#define TM {thread_m}
#define TN 16

typedef float v16 __attribute__((vector_size(64), aligned(4)));

static inline void micro(const float *restrict a, const float *restrict b, float *restrict acc, int k)
{{
    for (int p = 0; p < k; ++p) {{          // one column of A against one row of B
        v16 row = *(const v16 *)(b + p * TN);
        for (int i = 0; i < TM; ++i)
            *(v16 *)(acc + i * TN) += a[p * TM + i] * row;
    }}
}}

void main_task(const int task[3], const float *a, const float *b, const float *bias, float *y)
{{
    const int m0 = task[1] * TM, n0 = task[0] * TN;
    float acc[TM * TN] = {{0}};
    float panel_a[BK * TM], panel_b[BK * TN];
    for (int k0 = 0; k0 < 512; k0 += BK) {{
        for (int p = 0; p < BK; ++p) {{
            for (int i = 0; i < TM; ++i) panel_a[p * TM + i] = a[(size_t)(m0 + i) * 512 + k0 + p];
            for (int j = 0; j < TN; ++j) panel_b[p * TN + j] = b[(size_t)(k0 + p) * 512 + n0 + j];
        }}
        micro(panel_a, panel_b, acc, BK);
    }}
    for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j) {{
            float v = acc[i * TN + j] + bias[n0 + j];
            y[(size_t)(m0 + i) * 512 + n0 + j] = v > 0.0f ? v : 0.0f;
        }}
}}
"""


def _schedule(structure: str, block_k: int, thread_m: int) -> Schedule:
    """A legal schedule of the packed or tiled structure."""
    knobs = {"block_k": block_k, "pad": 0, "shared": True, "thread_m": thread_m, "thread_n": 1, "threads_x": 4,
             "threads_y": 4, "unroll": 1, "vector": 16}  # fmt: skip
    return Schedule.of(structure, knobs)


class Sample:
    """Builds a session folder event by event; `clock` is the session's monotonic time in seconds.

    `began` is when: a fixed morning, or this machine's now for viewers that read the real clocks.
    """

    def __init__(
        self,
        folder: Path,
        *,
        name: str = "first",
        goal: str | None = "1.1 peer",
        began: Now = Now(START, 1000.0, BOOT),  # noqa: B008 a frozen value
        device: Device = DEVICE,
        **settings: Any,
    ) -> None:
        self.folder = folder
        self.began = began
        self.clock = began.mono
        self.seq = 0
        self.rng = random.Random(7)
        self.number = 0
        self.round = 0
        self.best_us = BASELINE_US
        self.incumbent = 0
        for part in ("inbox", "best", "candidates"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        chosen = Settings().changed(**{"candidates": 600, **settings}).flat()
        self.put(
            ev.SessionCreated(
                name=name, problem=PROBLEM, device=device, backend=device.kind, agent="bandit", settings=chosen,
                versions={"cake-tui": "0.1.0"}, goal=goal,
            ),
            ev.EngineStarted(pid=4242, host="sample"),
            ev.Probed(compiler="cc", version="12.2.0"),
            ev.SelfTestEnded(cases=(("zeros", 1.0, "refused", "refused"),)),
        )  # fmt: skip

    # -- the folder ------------------------------------------------------------------------------------

    def put(self, *events: ev.Event, after: float = 0.05) -> None:
        """Append events, each a little later than the one before."""
        with (self.folder / "journal.jsonl").open("ab") as file:
            for event in events:
                self.clock += after
                self.seq += 1
                stamped = msgspec.structs.replace(
                    event, seq=self.seq, t=self.stamp(), mono=round(self.clock, 3), boot=self.began.boot
                )
                file.write(msgspec.json.encode(stamped) + b"\n")

    def stamp(self) -> str:
        """The wall time of `clock`."""
        wall = self.began.wall + timedelta(seconds=self.clock - self.began.mono)
        return wall.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def now(self, after: float = 1.0) -> Now:
        """The time of a viewer that looks `after` seconds later."""
        wall = self.began.wall + timedelta(seconds=self.clock - self.began.mono + after)
        return Now(wall, self.clock + after, self.began.boot)

    def beat(self, seconds: int = 1, **clock: Any) -> None:
        """Append telemetry, one line a second up to `clock`."""
        with (self.folder / "telemetry.jsonl").open("a", encoding="utf-8") as file:
            for back in range(seconds, 0, -1):
                mono = self.clock - back + 1
                wave = math.sin(mono / 40)
                reading = {
                    "mono": mono, "rate": round(2.61 + 0.02 * wave, 3), "load": round(0.3 + 0.2 * abs(wave), 2),
                    "steal_pct": round(max(0.0, 1.5 * wave), 1), "temperature_c": None, **clock,
                }  # fmt: skip
                line = {
                    "t": self.stamp(), "mono": mono, "boot": self.began.boot, "clock": reading,
                    "missing": {"temperature_c": "no sensor in this machine"},
                }  # fmt: skip
                file.write(json.dumps(line) + "\n")

    def kernel(self, number: int, schedule: Schedule) -> str:
        """Source text of a candidate."""
        knobs = dict(schedule.knobs)
        return SOURCE.format(
            kernel=PROBLEM.kernel, structure=schedule.structure, number=number,
            block_k=knobs.get("block_k", 512), thread_m=knobs.get("thread_m", 4),
        )  # fmt: skip

    def schedule_of_best(self) -> Schedule:
        """The incumbent's schedule, as the journal has it."""
        for line in (self.folder / "journal.jsonl").read_bytes().splitlines():
            event = msgspec.json.decode(line, type=ev.AnyEvent)
            if isinstance(event, ev.Planned) and event.candidate == self.incumbent:
                return event.schedule
        raise LookupError(self.incumbent)

    # -- candidates ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Candidate 0: the baseline."""
        schedule = Schedule.of("naive")
        proposal = Proposal(0, (), "the kernel's first schedule", "start", "bandit")
        self._plan(proposal, schedule, None)
        self._measure(BASELINE_US, 0.0, None)
        self._end(Measured(verdict="slower", avg_us=BASELINE_US, step="measure"), schedule, BASELINE_US)
        self._publish(0, schedule)
        self.put(ev.NoiseCalibrated(pair_noise=0.011, pairs=16, against=0), self._peer(0, BASELINE_US))

    def run(self, candidates: int) -> None:
        """So many candidates more, in rounds of four, with every way of ending among them."""
        if self.number == 0:
            self.start()
        until = self.number + candidates
        while self.number < until:
            self.round += 1
            self.put(ev.RoundBegan(round=self.round, size=4, incumbent=self.incumbent))
            wins = 0
            for _ in range(min(4, until - self.number)):
                wins += self._candidate()
            self.put(ev.RoundEnded(round=self.round, accepted=wins, summary={}))
            if self.round % 9 == 0:
                stale = Stale("S9", "2.3 runnable tasks of others, allowed 1.0", "series dropped and run again")
                self.put(ev.GuardFired(candidate=self.number - 1, stale=stale))

    def _candidate(self) -> int:
        action, arguments = self.rng.choice(ACTIONS)
        proposal = Proposal(self.incumbent, (Move(action, arguments),), "low arithmetic intensity", "finding", "bandit")
        structure = "packed" if self.number > 20 else "tiled" if self.number > 4 else "naive"
        block_k, thread_m = self.rng.choice((64, 128, 256)), self.rng.choice((4, 8, 12))
        schedule = _schedule(structure, block_k, thread_m) if structure != "naive" else Schedule("naive")
        draw = self.rng.random()
        if draw < 0.10:
            self._short(proposal, schedule, Rejected(step="laws", reason="panel_b needs 40960 bytes, L1 has 32768"))
            return 0
        if draw < 0.14:
            self._short(
                proposal, schedule, Screened(step="screen", reason="expected 2.1 × the best", predicted_us=3000.0)
            )
            return 0
        if draw < 0.18 and self.number > 3:
            self._short(proposal, schedule, Repeated(step="lower", reason="as candidate 2", of=2))
            return 0
        self._plan(proposal, schedule, self.best_us * 1.02)
        if draw < 0.21:
            log = "kernel.c:17:9: error: too many vector registers [-Werror]\n" * 3
            self._end(
                BuildFailed(step="build", reason="cc: exit 1: too many vector registers", log=log), schedule, None
            )
            return 0
        self.put(ev.BuildEnded(candidate=self.number, seconds=0.41, full_sha256="f" * 64, smoke_sha256="5" * 64,
                               facts=StaticFacts(compiler="cc 12.2", vector_share=0.93)))  # fmt: skip
        if draw < 0.235:
            self._end(Crashed(step="check", reason="killed by SIGSEGV", signal="SIGSEGV"), schedule, None)
            return 0
        if draw < 0.25:
            self._end(TimedOut(step="check", reason="ran longer than 2 s", limit_s=2.0), schedule, None)
            return 0
        if draw < 0.28:
            wrong = WrongAnswer(
                step="check", reason="row 511 is never written", failure="unwritten", input_set="default",
                shape="M=512,N=512,K=512", bad_elements=512, elements=262144, max_abs_err=3.1,
            )  # fmt: skip
            self._end(wrong, schedule, None)
            return 0
        self.put(ev.CheckEnded(candidate=self.number, seconds=0.2, agreement=Agreement(1.1e-5, 2e-6, 31.0, 0.22)))
        return self._timed(schedule)

    def _timed(self, schedule: Schedule) -> int:
        floor = 1_480.0
        room = math.log(self.best_us / floor)
        better = self.rng.random() < (0.55 if room > 1.5 else 0.16 if room > 0.04 else 0.03)
        gain = room * self.rng.uniform(0.12, 0.5) if better else -self.rng.uniform(0.002, 0.7)
        time_us = self.best_us / math.exp(gain)
        self._measure(time_us, gain, self.incumbent)
        verdict = "accepted" if gain > 0.006 else "coarse_only" if gain > -0.02 else "slower"
        if verdict != "slower":
            decision = "accept" if verdict == "accepted" else "undecided"
            verdict = "accepted" if decision == "accept" else self.rng.choice(("undecided", "noisy", "coarse_only"))
            result = GateResult(decision, gain, gain - 0.004, 2, 8, decision == "accept", "", time_us, self.best_us)
            if verdict != "coarse_only":
                self.put(ev.GateEnded(candidate=self.number, against=self.incumbent, seconds=1.9, result=result))
        number = self.number
        self._end(Measured(step="gate", verdict=verdict, avg_us=time_us), schedule, time_us)
        if verdict != "accepted":
            return 0
        self.best_us, self.incumbent = time_us, number
        self._publish(number, schedule)
        noise = 0.008 + 0.004 * self.rng.random()
        self.put(ev.NoiseCalibrated(pair_noise=noise, pairs=16, against=number), self._peer(number, time_us))
        return 1

    def _plan(self, proposal: Proposal, schedule: Schedule, predicted: float | None) -> None:
        self.put(ev.Planned(
            candidate=self.number, round=self.round, proposal=proposal, level="micro", schedule=schedule,
            predicted_us=predicted, source_sha256=hashlib.sha256(str(self.number).encode()).hexdigest(),
        ), after=0.3)  # fmt: skip
        self._write(self.number, "kernel.c", self.kernel(self.number, schedule))
        self._write(self.number, "program.cake", f"program {PROBLEM.kernel} ir 1 target c\n  size M = 512\n")

    def _measure(self, time_us: float, gain: float, against: int | None) -> None:
        runs = (time_us, time_us * 1.004, time_us * 0.997)
        self.put(
            ev.Coarse(candidate=self.number, against=against, seconds=0.2, avg_us=time_us, runs_us=runs, gain=gain)
        )

    def _short(self, proposal: Proposal, schedule: Schedule, outcome: Outcome) -> None:
        self._feedback(outcome, proposal.text, None, ())
        self.put(ev.CandidateEnded(candidate=self.number, round=self.round, outcome=outcome, proposal=proposal,
                                   level="micro", schedule=schedule,
                                   predicted_us=getattr(outcome, "predicted_us", None)))  # fmt: skip
        self.number += 1

    def _end(self, outcome: Outcome, schedule: Schedule, time_us: float | None) -> None:
        findings = (
            Finding("memory_bound", "memory bound", "structural", 0.71, (("bytes_per_flop", 0.21), ("l2_share", 0.64)),
                    "keep a panel of B in L1 and walk A past it", ("apply_tiling", "apply_register_block")),
            Finding("error_margin", "error margin", "numeric", 0.4, (("bound_share", 0.22),), "nothing to do", ()),
        )  # fmt: skip
        found = findings if time_us is not None else findings[:0]
        self._feedback(outcome, "apply_unroll(4)", time_us, found)
        self.put(ev.CandidateEnded(candidate=self.number, round=self.round, outcome=outcome, findings=found,
                                   profile=Profile(source="static+model", vector_share=0.93)), after=0.4)  # fmt: skip
        self.number += 1

    def _feedback(self, outcome: Outcome, text: str, time_us: float | None, findings: tuple[Finding, ...]) -> None:
        tflops = None if time_us is None else 2 * 512**3 / time_us * 1e-6
        runs = None if time_us is None else [time_us, time_us * 1.004, time_us * 0.997]
        value = {
            "iteration": self.number, "action_taken": text,
            "compile_status": "ok" if not isinstance(outcome, BuildFailed) else "no",
            "outcome": type(outcome).__name__, "verdict": getattr(outcome, "verdict", None),
            "correctness": {"max_abs_err": 1.1e-5 if time_us else None, "rel_err": 2e-6 if time_us else None,
                            "passed": True if time_us else None},
            "perf": None if time_us is None else {"avg_us": time_us, "throughput_tflops": tflops, "runs_us": runs},
            "profile": {"source": "static+model", "sm_occupancy_pct": None, "memory_throughput_pct": 64.2,
                        "vector_share": 0.93, "spills": 0},
            "failure": None if time_us else {"reason": outcome.reason, "limit": None},
            "best_so_far": {"rank_est": None, "avg_us": self.best_us},
            "findings": [{"label": f.label, "kind": f.kind, "confidence": f.confidence, "evidence": dict(f.evidence),
                          "advice": f.advice, "actions": list(f.actions)} for f in findings],
            "round": {"number": self.round, "trends": [
                {"knob": "unroll", "from": 2, "to": 4, "change_pct": 0.1, "noise_pct": 0.2}], "structures": []},
        }  # fmt: skip
        self._write(self.number, "feedback.json", json.dumps(value, indent=1))

    def _peer(self, against: int, time_us: float) -> ev.PeerTimed:
        ratio = NUMPY_US / time_us
        return ev.PeerTimed(peer="numpy", avg_us=NUMPY_US, ratio=ratio, against=against, threads=2, version="2.4.6")

    def _publish(self, number: int, schedule: Schedule) -> None:
        (self.folder / "best" / "kernel.c").write_text(self.kernel(number, schedule), encoding="utf-8")
        (self.folder / "best" / "candidate").write_text(f"{number}\n", encoding="utf-8")

    def _write(self, number: int, name: str, text: str) -> None:
        folder = self.folder / "candidates" / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def running(folder: Path, candidates: int = 150, **options: Any) -> Sample:
    """A run in full swing: somebody injected a move, two candidates are in flight."""
    sample = Sample(folder, **options)
    sample.run(max(1, candidates * 3 // 5))
    move = {"action": "apply_register_block", "arguments": [["m", 8], ["n", 2]]}
    body = {"moves": [move], "reason": "the loads are cheap now", "text": "apply_register_block(8, 2)"}
    sample.put(ev.RequestTaken(id="request-1", who="anna", what="inject", body=body))
    sample.run(candidates - candidates * 3 // 5)
    sample.put(ev.RoundBegan(round=sample.round + 1, size=4, incumbent=sample.incumbent))
    for ended in ("build", ""):
        schedule = _schedule("packed", 256, 8)
        proposal = Proposal(sample.incumbent, (Move("apply_unroll", (("factor", 8),)),), "probe", "probe", "bandit")
        sample._plan(proposal, schedule, sample.best_us)
        if ended:
            sample.put(ev.BuildEnded(candidate=sample.number, seconds=0.4, full_sha256="f" * 64, smoke_sha256="5" * 64))
        sample.number += 1
    sample.beat(240)
    return sample
