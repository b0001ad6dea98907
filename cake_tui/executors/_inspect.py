"""One tool at work: a profiler or a memory checker over some kernels, in a scratch folder and a process group."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from cake_tui.errors import UserError
from cake_tui.executors import Wait
from cake_tui.executors._compile import Compile
from cake_tui.executors._patience import TICK_S
from cake_tui.model.device import Device
from cake_tui.model.jobs import Inspect, Inspected


class Limits(NamedTuple):
    """How long a tool may run, and the mark by which its processes are found again."""

    timeout_s: float
    mark: str


def inspect(inspector: Any, job: Inspect, store: Path, device: Device, limits: Limits, wait: Wait | None) -> Inspected:
    """Run a backend's `inspector` to its end or its limit and return what it said.

    What `wait` raises ends it and travels on.
    """
    began = time.monotonic()
    place = store / "building"
    try:
        place.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-{job.tool}-", dir=place))
    except OSError as error:
        return Inspected(refused=f"{place}: {error.strerror}", cure="make space there")
    try:
        try:
            command = inspector.command(job, store, device, folder)
            one = Compile(command, folder, limits.timeout_s, limits.mark)
        except UserError as error:
            what, _, cure = str(error).partition("; ")
            return Inspected(refused=what, cure=cure)
        try:
            while one.poll() is None:
                time.sleep(TICK_S / 5)
                if wait is not None:
                    wait()
        finally:
            one.end()
        found: Inspected = inspector.read(job, folder, one.log.text, timed_out=one.timed_out)
        return msgspec.structs.replace(found, seconds=time.monotonic() - began)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
