"""The program that profiler and memory checker watch: runs candidates' launches through the driver, without CuPy.

It reads an order beside it, warms each candidate up, runs its launches once more between the profiler's start and
stop, and writes a line for each launch that was made, so that rows of counters find their candidate.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable
from pathlib import Path

if __name__ == "__main__":  # started as a script, from wherever the package lies
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

import msgspec

from cake_tui.backends._inputs import make_inputs
from cake_tui.backends.cuda.driver import CudaError, Driver
from cake_tui.backends.cuda.memory import DTYPE_BYTES
from cake_tui.backends.cuda.plan import Limits, prepare
from cake_tui.errors import Ended, UserError
from cake_tui.ir.families import dimensions, inputs_of
from cake_tui.model.device import Device
from cake_tui.model.jobs import Inspect, binary_path
from cake_tui.model.lowered import LaunchPlan, Lowered
from cake_tui.model.problem import BufferSpec, Problem, Shape

ORDER, MADE = "order.json", "made.jsonl"
WARM_UP = 2  # runs before the counted one: the first one fills caches and the driver's tables


class Order(msgspec.Struct, frozen=True):
    """What to run: candidates by number, the plan of each and its binary on this machine."""

    problem: Problem
    device: str  # UUID
    candidates: tuple[tuple[int, LaunchPlan, str], ...]
    seed: int
    warm_up: int


class Made(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line: a launch that was made between start and stop, or why a candidate could not be run."""

    candidate: int
    entry: str = ""
    failed: str = ""


def write_order(job: Inspect, store: Path, device: Device, folder: Path) -> None:
    """Write the order of a job into the tool's folder."""
    counted = job.tool == "ncu"
    candidates = tuple(
        (
            number,
            _plan(job.problem, subject.lowered, counted),
            str(binary_path(store, subject.binary_sha256).absolute()),
        )
        for number, subject in job.subjects
    )
    order = Order(job.problem, device.uuid, candidates, job.seed, WARM_UP if counted else 0)
    (folder / ORDER).write_bytes(msgspec.json.encode(order))


def command(folder: Path) -> tuple[str, ...]:
    """Return what the tool is to start."""
    return (sys.executable, "-P", str(Path(__file__).resolve()), str((folder / ORDER).absolute()))


def read_made(folder: Path) -> tuple[list[Made], dict[int, str]]:
    """Return the launches that were made, in order, and by candidate why it could not be run; torn lines are none."""
    made: list[Made] = []
    failed: dict[int, str] = {}
    for line in text_of(folder / MADE).splitlines():
        try:
            one = msgspec.json.decode(line, type=Made)
        except msgspec.MsgspecError:
            continue
        if one.failed:
            failed[one.candidate] = one.failed
        else:
            made.append(one)
    return made, failed


def text_of(path: Path) -> str:
    """Return a file's text, whatever is in it; empty where there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _plan(problem: Problem, lowered: Lowered, counted: bool) -> LaunchPlan:
    """Return the plan to run: of the last ranked shape, or the one with the smallest sizes."""
    last = [plan for plan in lowered.plans if plan.shape == problem.shapes[-1]]
    if counted and last:
        return last[0]
    return min(lowered.plans, key=lambda plan: math.prod(size for _, size in plan.shape.sizes))


# -- the program ---------------------------------------------------------------------------------------------


def main() -> int:
    """Run the order; candidates that cannot be launched are told, a device that fails ends the program."""
    path = Path(sys.argv[1])
    order = msgspec.json.decode(path.read_bytes(), type=Order)
    driver = Driver(quiet=True)
    device = driver.find(order.device)
    driver.current(device)
    with (path.parent / MADE).open("ab", buffering=0) as journal:
        for number, plan, binary in order.candidates:
            try:
                _run(driver, Limits(driver, device), order, number, plan, Path(binary), journal.fileno())
            except Ended as ended:
                _tell(journal.fileno(), Made(number, failed=ended.outcome.reason))
            except (CudaError, OSError, UserError) as error:
                _tell(journal.fileno(), Made(number, failed=str(error)))
                if isinstance(error, CudaError) and error.sticky:
                    return 1
    return 0


def _run(
    driver: Driver, limits: Limits, order: Order, number: int, plan: LaunchPlan, binary: Path, journal: int
) -> None:  # fmt: skip
    """Run one candidate on memory of its own; raises Ended, CudaError, OSError or UserError."""
    module = driver.load(binary.read_bytes())
    stream = driver.stream()
    addresses: dict[str, int] = {}
    try:
        for spec in order.problem.buffers:
            addresses[spec.name] = _buffer(driver, spec, plan.shape, stream)
        for workspace in plan.workspaces:
            addresses[workspace.name] = driver.allocate(workspace.size_bytes)
            driver.fill8(addresses[workspace.name], 0, max(workspace.size_bytes, 1), stream)
        _fill_inputs(driver, order.problem, plan.shape, order.seed, addresses, stream)
        launches = prepare(driver, limits, module, plan, addresses)
        for _ in range(order.warm_up):
            for launch in launches:
                launch.put(stream)
        driver.synchronize(stream)
        driver.call("cuProfilerStart")
        for launch, told in zip(launches, plan.launches):
            launch.put(stream)
            _tell(journal, Made(number, told.entry))
        driver.synchronize(stream)
        driver.call("cuProfilerStop")
    finally:
        _give_back(driver, addresses.values(), module)


def _buffer(driver: Driver, spec: BufferSpec, shape: Shape, stream: int) -> int:
    size = math.prod(dimensions(spec, shape)) * DTYPE_BYTES[spec.dtype]
    address = driver.allocate(size)
    driver.fill8(address, 0, max(size, 1), stream)
    return address


def _fill_inputs(
    driver: Driver, problem: Problem, shape: Shape, seed: int, addresses: dict[str, int], stream: int
) -> None:  # fmt: skip
    arrays = make_inputs(problem, shape, "default", seed)
    for spec in inputs_of(problem):
        driver.upload(addresses[spec.name], arrays[spec.name].ctypes.data, arrays[spec.name].nbytes, stream)
    driver.synchronize(stream)


def _give_back(driver: Driver, addresses: Iterable[int], module: int) -> None:
    """Free what can be freed; after a failure the device may refuse, and the failure itself is what counts."""
    try:
        for address in addresses:
            driver.free(address)
        driver.unload(module)
    except CudaError:
        return


def _tell(journal: int, line: Made) -> None:
    """Write one line at once: what comes next may end this process."""
    os.write(journal, msgspec.json.encode(line) + b"\n")


if __name__ == "__main__":
    sys.exit(main())
