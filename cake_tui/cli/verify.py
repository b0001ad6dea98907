"""Compile an exported file, check its kernel against float64 and time it; say whether it holds what it says.

First the text as it was exported: a kernel, figures or a harness that somebody changed. Then a C or CUDA file alone, as
anybody would: compiler (nvcc for CUDA) and harness, written anew around its kernel. Then the kernel through the check
of the product, with poisoned outputs, guards around buffers and exact inputs. Exit 7 where anything is wrong, 4 while a
session uses the device: each would spoil the other's times.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from cake_tui import figures, registry
from cake_tui.backends import Backend
from cake_tui.cli import Command
from cake_tui.cli._output import print_json
from cake_tui.cli._trial import RUN_LIMIT_S, held, said
from cake_tui.errors import ENVIRONMENT, FOUND_WRONG, OK, Ended, UserError, first_error
from cake_tui.executors.local import Local
from cake_tui.exporters import Bundle, Exporter
from cake_tui.model.device import Device, Target
from cake_tui.model.facts import Agreement
from cake_tui.model.jobs import BuildJob, Check, NotBuilt, Subject
from cake_tui.steps import check
from cake_tui.toml import read_text

SEED = 20_260_101
BACKENDS: dict[Target, str] = {"c": "cpu", "cuda": "cuda"}
HARNESS_LIMIT_S = 600.0
LARGEST_BYTES = 64 << 20


class Verified(msgspec.Struct, frozen=True):
    """What was found; times in microseconds. The harness's figures are of this machine, now."""

    file: str
    passed: bool
    reason: str
    candidate: int
    source_sha256: str
    harness: dict[str, Any]
    max_abs_err: float | None
    bound_share: float | None
    stated_us: float | None
    simulated: bool
    notice: str  # why the time here is not the stated one, as far as can be seen; empty where it is about that


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file and the form of the answer."""
    parser.add_argument("file", metavar="FILE", type=Path, help="a file that cake-tui export wrote")
    parser.add_argument("--format", metavar="F", help="default: by the file's ending")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Verify and print one line (or JSON), two where the time is another; exit 7 where the file is not as it says."""
    text = _text(args.file)
    exporter = _exporter(args.file, args.format)
    try:
        bundle = exporter.read(text)
    except UserError as error:
        named = str(error) if str(args.file) in str(error) else f"{args.file}: {error}"
        raise UserError(named, error.exit_code) from None
    name = BACKENDS[bundle.lowered.target]
    backend: Backend = registry.load("backends", name)
    device = backend.devices()[0]
    with (
        held(device, f"verify {args.file.name}"),
        tempfile.TemporaryDirectory(prefix="cake-tui-verify-") as scratch,
    ):
        compiler = _compiler(bundle, backend, device)
        harness: dict[str, Any] = {}
        load = 0.0
        reason = ""
        if compiler is not None:  # else its kernel alone is checked
            load = os.getloadavg()[0]  # of others: the harness has not run yet
            harness, reason = _alone(exporter, bundle, compiler, Path(scratch))
        agreement: Agreement | None = None
        if not reason:
            executor = Local(name, Path(scratch) / "store", device)
            try:
                agreement = _checked(executor, bundle)
            except Ended as ended:
                reason = said(ended.outcome)
            finally:
                executor.close()
    verified = Verified(
        file=str(args.file), passed=not reason, reason=reason, candidate=bundle.candidate,
        source_sha256=bundle.lowered.sha256, harness=harness, stated_us=bundle.time_us, simulated=bundle.simulated,
        max_abs_err=agreement.max_abs_err if agreement else None,
        bound_share=agreement.bound_share if agreement else None,
        notice=_notice(bundle, device, harness, load),
    )  # fmt: skip
    if args.json:
        print_json(verified)
    else:
        print(_line(verified))
        if verified.notice:
            print(f"{verified.file}: {verified.notice}")
    return OK if verified.passed else FOUND_WRONG


def _text(path: Path) -> str:
    try:
        return read_text(path, LARGEST_BYTES).replace("\r\n", "\n")
    except UserError as error:
        raise UserError(f"{error}; name a file that cake-tui export wrote") from None


def _exporter(path: Path, name: str | None) -> Exporter:
    if name is not None:
        exporter: Exporter = registry.load("exporters", name)
        return exporter
    for known in registry.names("exporters"):
        exporter = registry.load("exporters", known)
        if exporter.suffix == path.suffix:
            return exporter
    raise UserError(f"{path}: no format has the ending {path.suffix or '(none)'}; name one with --format")


def _compiler(bundle: Bundle, backend: Backend, device: Device) -> tuple[str, ...] | None:
    """Return what makes a program of the file, None where it is not here: NVRTC makes kernels only."""
    if bundle.lowered.target == "cuda":
        found = shutil.which("nvcc")
        return None if found is None else (found,)
    return backend.probe(device).command


def _alone(exporter: Exporter, bundle: Bundle, compiler: tuple[str, ...], scratch: Path) -> tuple[dict[str, Any], str]:
    """Compile the whole file and run its harness; return its figures and why it failed, if it did.

    The file is written anew: what its own harness says, anybody could have made it say.
    """
    source, program = (scratch / "export").with_suffix(exporter.suffix), scratch / "export"
    command = exporter.command(bundle, compiler, str(source), str(program))
    if command is None:
        return {}, ""
    source.write_text(exporter.write(bundle), encoding="utf-8")
    built = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if built.returncode != 0:
        words = first_error(built.stderr) or f"the compiler ended with {built.returncode}"
        return {}, f"it does not compile by itself: {words}"
    try:
        ran = subprocess.run(
            [str(program)], capture_output=True, text=True, errors="replace", timeout=HARNESS_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return {}, f"its harness did not end within {HARNESS_LIMIT_S:g} s"
    if ran.returncode < 0:
        return {}, f"its harness ended by signal {-ran.returncode}"
    try:
        figures: dict[str, Any] = json.loads(ran.stdout)
    except ValueError:
        return {}, f"its harness printed no figures (exit {ran.returncode})"
    if figures.get("passed") is False:
        return figures, f"its own check failed: largest error {figures.get('max_abs_err')}"
    return figures, ""


def _checked(executor: Local, bundle: Bundle) -> Agreement:
    """Run the product's check on the kernel as it stands in the file; raises Ended."""
    for _, reply in executor.build([BuildJob(bundle.lowered)]):
        if isinstance(reply, NotBuilt):
            raise UserError(f"the kernel does not compile: {reply.reason}", ENVIRONMENT)
        subject = Subject(reply.binary_sha256, bundle.lowered)
        return check.ask(Check(bundle.problem, subject, "full", SEED, RUN_LIMIT_S), executor)
    raise RuntimeError("the executor answered no build job")


def _notice(bundle: Bundle, device: Device, harness: dict[str, Any], load: float) -> str:
    """Say how far the time here is from the stated one, and what may be the reason, where noise cannot be."""
    time, stated, slow = harness.get("time_us"), bundle.time_us, bundle.slow_us
    if time is None or not stated or slow is None or time <= slow:
        return ""
    said = [f"{figures.ratio(time / stated, 2)} the stated time", f"fastest {figures.time(harness.get('fastest_us'))}"]
    if device.kind == "cpu":
        said.append(f"load {load:.1f} on {len(os.sched_getaffinity(0))} logical processors")
    if bundle.device.name != device.name:
        said.append(f"stated for {bundle.device.name}, this is {device.name}")
    return f"{'; '.join(said)}: other work, another clock or another machine makes times like that"


def _line(found: Verified) -> str:
    word = "ok" if found.passed else "WRONG"
    simulated = " (its figures are SIMULATED)" if found.simulated else ""
    stated = f", stated {figures.time(found.stated_us)}{simulated}" if found.stated_us else simulated
    time = f", {figures.time(found.harness['time_us'])} here" if "time_us" in found.harness else ""
    error = f", largest error {found.max_abs_err:.2g}" if found.max_abs_err is not None else ""
    why = f": {found.reason}" if found.reason else ""
    what = f"candidate {found.candidate}, {figures.digest(found.source_sha256)}"
    return f"{found.file}: {word}{why}: {what}{time}{stated}{error}"


PLUGIN: Command = Command(example="cake-tui verify best.c", add_arguments=add_arguments, run=run)
