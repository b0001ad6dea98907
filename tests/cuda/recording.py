"""Kernels with and without a fault, a pair for each rule: built, run under the profiler, their counters recorded.

On a machine with a GPU, nvcc and ncu::

    python -m tests.cuda.recording --out FOLDER

writes ``rule_pairs.json`` (counters and build reports, to be kept as tests/data/counters/rule_pairs.json) and
``rule_pairs_raw.txt`` (what ncu printed), and says for each pair whether its rule fires where it should. With
``--only RULE`` one rule's kernels are taken again, and the others are those that are kept.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from cake_tui import registry
from cake_tui.backends.cuda import ncu, static
from cake_tui.backends.cuda.devices import look
from cake_tui.backends.cuda.ncu_target import text_of
from cake_tui.errors import UserError
from cake_tui.model.device import Device
from cake_tui.model.facts import Profile, StaticFacts
from cake_tui.model.finding import Finding
from cake_tui.model.jobs import Inspect, Subject, binary_path
from cake_tui.model.lowered import Argument, Launch, LaunchPlan, Lowered
from cake_tui.model.problem import BufferSpec, Problem, Shape
from cake_tui.steps import explain
from tests.rules.evidence import evidence

PAIRS = Path(__file__).with_name("rule_pairs")
RECORDED = Path(__file__).parents[1] / "data" / "counters" / "rule_pairs.json"
SURE = 0.5  # confidence with which a rule must speak of its fault
NCU_S = 180.0


class Taken(msgspec.Struct, frozen=True, omit_defaults=True):
    """One kernel's counters: which pair of ``pairs.toml``, ``faulty`` or ``sound``."""

    pair: int
    variant: str
    rule: str
    profile: Profile | None
    facts: StaticFacts
    failed: str = ""


class Recording(msgspec.Struct, frozen=True):
    """All pairs, and what they were taken with."""

    device: Device
    ncu: str
    nvcc: str
    taken: tuple[Taken, ...]


def pairs() -> list[dict[str, Any]]:
    """Return the pairs as ``pairs.toml`` states them."""
    listed: list[dict[str, Any]] = tomllib.loads((PAIRS / "pairs.toml").read_text(encoding="utf-8"))["pair"]
    return listed


def variants(pair: Mapping[str, Any]) -> Iterator[str]:
    """Name the variants that a pair has."""
    return (name for name in ("faulty", "sound") if name in pair)


def problem_of(pair: Mapping[str, Any]) -> Problem:
    """Return a problem with the pair's buffers, so that the profiler's target can run it."""
    buffers = tuple(
        BufferSpec(name, "f32", (name.upper(),), "uniform", role="out" if name == "y" else "in")
        for name in pair["sizes"]
    )
    sizes = tuple((name.upper(), size) for name, size in pair["sizes"].items())
    return Problem("pair", None, "", buffers, (Shape(sizes),))


def build(pair: Mapping[str, Any], variant: str, arch: str, folder: Path) -> tuple[Path, StaticFacts]:
    """Compile one variant; return its cubin and what its build tells."""
    source = PAIRS / pair["source"]
    cubin = folder / f"{source.stem}-{variant}-{abs(hash(str(pair[variant])))}.cubin"
    defines = [f"-D{name}={value}" for name, value in pair[variant]["defines"].items()]
    done = subprocess.run(
        ["nvcc", "-cubin", f"-arch={arch}", "-Xptxas", "-v", *defines, "-o", str(cubin), str(source)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise UserError(f"nvcc refuses {source.name} ({variant}): {done.stderr[-500:]}")
    tool = ncu.find_tool("nvdisasm")
    said = subprocess.run([tool, "-c", str(cubin)], capture_output=True, text=True, check=False) if tool else None
    return cubin, static.with_code(static.from_ptxas(done.stdout + done.stderr), cubin, said.stdout if said else "")


def subject_of(pair: Mapping[str, Any], variant: str, cubin: Path, store: Path, arch: str) -> Subject:
    """Put a cubin into the store and return it with its launch."""
    entry = Path(pair["source"]).stem
    grid, block = ((*pair[variant][name], 1, 1)[:3] for name in ("grid", "block"))
    arguments = tuple(Argument("buffer", name) for name in pair["sizes"])
    plan = LaunchPlan(problem_of(pair).shapes[0], (Launch(entry, grid, arguments, block),))
    sha256 = cubin.stem
    kept = binary_path(store, sha256)
    kept.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(cubin, kept)
    return Subject(sha256, Lowered("cuda", arch, "", (), (plan,)))


def record(device: Device, raw: Path, only: str = "") -> list[Taken]:
    """Build and profile pairs (of one rule), each in one call of ncu; what it printed goes into the folder `raw`."""
    taken: list[Taken] = []
    inspector = ncu.Ncu()
    with tempfile.TemporaryDirectory(prefix="rule-pairs-") as scratch:
        store = Path(scratch)
        for number, pair in enumerate(pairs()):
            if only not in ("", pair["rule"]):
                continue
            subjects, facts = [], {}
            for at, variant in enumerate(variants(pair)):
                cubin, facts[variant] = build(pair, variant, device.arch, store)
                subjects.append((at, subject_of(pair, variant, cubin, store, device.arch)))
            folder = Path(tempfile.mkdtemp(dir=store))
            job = Inspect(problem_of(pair), "ncu", tuple(subjects), seed=7)
            began = time.monotonic()
            command = inspector.command(job, store, device, folder)
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=NCU_S, check=False, errors="replace"
            )
            output = done.stdout + done.stderr
            found = inspector.read(job, folder, output, timed_out=False)
            with (raw / "rule_pairs_raw.txt").open("a", encoding="utf-8") as file:
                file.write(f"### {pair['rule']} {pair['source']}\n{output}{text_of(folder / ncu.COUNTERS)}\n")
            print(f"{pair['rule']}: {time.monotonic() - began:.1f} s {found.refused} {found.cure}".rstrip(), flush=True)
            for seen, variant in zip(found.seen, variants(pair)):
                taken.append(Taken(number, variant, pair["rule"], seen.profile, facts[variant], seen.failed))
    return taken


def findings_of(taken: Taken, device: Device) -> tuple[Finding, ...]:
    """Return what all rules say about a recorded kernel, as the product would tell it."""
    pair = pairs()[taken.pair]
    sizes = [["M", 1024], ["N", 1024], ["K", 1024]]
    knobs = {"pad": 0, "unroll": 1, "vector": 1, "thread_m": 1, "thread_n": 1, "shared": False}
    knobs |= pair[taken.variant].get("schedule", {})
    changes = {
        "problem": {"family": pair.get("family", "elementwise"), "shapes": [{"sizes": sizes}]},
        "device": msgspec.to_builtins(device),
        "schedule": {"structure": "tiled", "knobs": sorted([name, value] for name, value in knobs.items())},
        "facts": msgspec.to_builtins(taken.facts),
        "profile": {"imbalance_pct": None, **msgspec.to_builtins(taken.profile)},
    }
    if "least_bytes" in pair:
        changes["profile"]["bytes_moved"] = pair["least_bytes"]
    every = dict.fromkeys(("change_block_config", "apply_unroll"), ())
    return explain.find(evidence(changes), every)


def verdict(taken: Taken, device: Device) -> str:
    """Say what is wrong with what the rules say of a recorded kernel; empty where nothing is."""
    if taken.profile is None:
        return f"no counters: {taken.failed}"
    pair = pairs()[taken.pair]
    found = findings_of(taken, device)
    mine = next((one for one in found if one.rule == taken.rule), None)
    if taken.variant == "sound":
        return "" if mine is None else f"fires on the sound kernel with {mine.confidence}: {dict(mine.evidence)}"
    if mine is None:
        return "is silent about the faulty kernel"
    names = [one.rule for one in found]
    if "before" in pair and pair["before"] in names and names.index(pair["before"]) < names.index(taken.rule):
        return f"comes behind {pair['before']}"
    return "" if mine.confidence >= SURE else f"has only {mine.confidence} on the faulty kernel: {dict(mine.evidence)}"


def main() -> int:
    """Record, write, judge; returns the number of pairs that are not as they should be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="", metavar="RULE", help="take this rule's pairs again, into what is kept")
    parser.add_argument("--judge", action="store_true", help="judge the recording that is there, take none")
    options = parser.parse_args()
    if not options.judge:
        options.out.mkdir(parents=True, exist_ok=True)
        device = look().devices[0]
        taken = record(device, options.out, options.only)
        if options.only:
            kept = msgspec.json.decode(RECORDED.read_bytes(), type=Recording).taken
            taken = sorted([*taken, *(one for one in kept if one.rule != options.only)], key=lambda one: one.pair)
        recording = Recording(device, _version("ncu"), _version("nvcc"), tuple(taken))
        text = json.dumps(_without_unknown(msgspec.to_builtins(recording)), indent=1)
        (options.out / RECORDED.name).write_text(text + "\n", encoding="utf-8")
    recording = msgspec.json.decode((options.out / RECORDED.name).read_bytes(), type=Recording)
    wrong = 0
    for one in recording.taken:
        said = verdict(one, recording.device)
        wrong += bool(said)
        print(f"{one.rule} {one.variant}: {said or 'as it should be'}")
        if one.profile is not None:
            others = [f"{found.rule} {found.confidence}" for found in findings_of(one, recording.device)]
            print(f"    {', '.join(others)}\n    {dict(one.profile.stalls)}")
    print(f"{wrong} of {len(recording.taken)} are not as they should be; rules: {len(registry.names('rules'))}")
    return wrong


def _without_unknown(value: Any) -> Any:
    """Leave out what is not known: it is the default when the file is read."""
    if isinstance(value, dict):
        return {key: _without_unknown(inner) for key, inner in value.items() if inner not in (None, [], (), "")}
    return [_without_unknown(inner) for inner in value] if isinstance(value, list | tuple) else value


def _version(tool: str) -> str:
    path = ncu.find_tool(tool)
    if path is None:
        return ""
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return next((line for line in done.stdout.splitlines() if "ersion" in line or "release" in line), "")


if __name__ == "__main__":
    sys.exit(main())
