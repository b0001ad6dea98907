"""A launch plan with addresses in place: limits and arguments are checked before anything reaches the driver."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, Protocol

from cake_tui.backends.cuda.driver import (
    TENSOR_MAP_BYTES,
    CudaError,
    Driver,
    PreparedLaunch,
    encode_tensor_map,
)
from cake_tui.errors import Ended
from cake_tui.model.lowered import Argument, Launch, LaunchPlan
from cake_tui.model.outcome import LaunchFailed
from cake_tui.model.problem import Shape

INT_LIMIT = 2**31 - 1
PORTABLE_CLUSTER, LARGEST_CLUSTER = 8, 16
_GRID = ("grid_x", "grid_y", "grid_z")
_BLOCK = ("block_x", "block_y", "block_z")
_BYTES = {"buffer": 8, "workspace": 8, "size": 4, "tensor_map": TENSOR_MAP_BYTES}


def failed(reason: str, **limits: Any) -> Ended:
    """Return the ending of a kernel that cannot be launched."""
    return Ended(LaunchFailed(reason=reason, **limits))


class SizeLimits(Protocol):
    """Limits by the driver's attribute."""

    def __getitem__(self, name: str, /) -> int:
        """Return one limit."""


class Limits:
    """What a device allows a launch, read once."""

    def __init__(self, driver: Driver, device: int) -> None:
        names = (*_GRID, *_BLOCK, "threads_per_block", "smem_per_block_bytes", "major")
        self._found = {name: driver.attribute(device, name) for name in names}

    def __getitem__(self, name: str) -> int:
        """Return one limit by the driver's attribute."""
        return self._found[name]


def prepare(
    driver: Driver, limits: Limits, module: int, plan: LaunchPlan, addresses: Mapping[str, int]
) -> list[PreparedLaunch]:
    """Return the plan's launches ready to run; `addresses` holds buffers and workspaces by name.

    Raises Ended(LaunchFailed) naming the limit or the argument.
    """
    if not plan.launches:
        raise failed("the launch plan is empty")
    return [_prepared(driver, limits, module, launch, plan.shape, addresses) for launch in plan.launches]


def _prepared(
    driver: Driver, limits: Limits, module: int, launch: Launch, shape: Shape, addresses: Mapping[str, int]
) -> PreparedLaunch:
    check_limits(limits, launch)
    try:
        function = driver.function(module, launch.entry)
    except CudaError as error:
        if error.sticky:
            raise
        raise failed(f"the binary has no entry {launch.entry} ({error.name})") from None
    _check_function(driver, limits, function, launch)
    check_parameters(driver.parameter_bytes(function), launch)
    words = [_word(driver, launch, argument, shape, addresses) for argument in launch.arguments]
    try:
        return PreparedLaunch(driver, function, launch.grid, launch.block, words, launch.smem_bytes, launch.cluster)
    except CudaError as error:
        if error.sticky:
            raise
        raise failed(f"{launch.entry}: {error}") from None


def check_limits(limits: SizeLimits, launch: Launch) -> None:
    """Hold grid, block, cluster and shared memory against the device; raises Ended(LaunchFailed)."""
    for kind, counts, names in (("grid", launch.grid, _GRID), ("block", launch.block, _BLOCK)):
        unit = "blocks" if kind == "grid" else "threads"
        for axis, count, name in zip("xyz", counts, names):
            _refuse_above(launch.entry, f"{kind}.{axis}", count, limits[name], unit, least=1)
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    if threads > limits["threads_per_block"]:
        raise failed(
            f"{launch.entry}: {threads} threads > {limits['threads_per_block']}", limit="threads a block",
            asked=threads, available=limits["threads_per_block"], unit="threads",
        )  # fmt: skip
    _refuse_above(
        launch.entry, "dynamic shared memory", launch.smem_bytes, limits["smem_per_block_bytes"], "bytes", least=0
    )
    cluster = launch.cluster[0] * launch.cluster[1] * launch.cluster[2]
    if cluster != 1:
        most = LARGEST_CLUSTER if limits["major"] >= 9 else 1
        _refuse_above(launch.entry, "cluster", cluster, most, "blocks", least=1)
        for axis, blocks, count in zip("xyz", launch.grid, launch.cluster):
            if blocks % count:
                raise failed(f"{launch.entry}: grid.{axis} {blocks} is no multiple of the cluster's {count}")


def _refuse_above(entry: str, what: str, asked: int, most: int, unit: str, least: int) -> None:
    if asked > most:
        raise failed(f"{entry}: {what} {asked} > {most}", limit=what, asked=asked, available=most, unit=unit)
    if asked < least:
        raise failed(f"{entry}: {what} {asked} < {least}", limit=what, asked=asked, available=least, unit=unit)


def _check_function(driver: Driver, limits: Limits, function: int, launch: Launch) -> None:
    """Hold the launch against what the compiled function can take; raises Ended(LaunchFailed)."""
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    most = driver.function_attribute(function, "threads_per_block")
    if threads > most:
        registers = driver.function_attribute(function, "registers")
        raise failed(
            f"{launch.entry}: {threads} threads > {most}, which is all that {registers} registers a thread allow",
            limit="threads a block", asked=threads, available=most, unit="threads",
        )  # fmt: skip
    static = driver.function_attribute(function, "smem_static_bytes")
    available = limits["smem_per_block_bytes"]
    if static + launch.smem_bytes > available:
        raise failed(
            f"{launch.entry}: shared memory {static} + {launch.smem_bytes} > {available} bytes",
            limit="shared memory", asked=static + launch.smem_bytes, available=available, unit="bytes",
        )  # fmt: skip


def check_parameters(sizes: list[int] | None, launch: Launch) -> None:
    """Hold the plan's arguments against the parameters that the binary declares; raises Ended(LaunchFailed)."""
    if sizes is None:
        return
    if len(sizes) != len(launch.arguments):
        raise failed(
            f"{launch.entry}: takes {len(sizes)} arguments, the plan passes {len(launch.arguments)}",
            limit="arguments", asked=len(launch.arguments), available=len(sizes), unit="arguments",
        )  # fmt: skip
    for position, (size, argument) in enumerate(zip(sizes, launch.arguments)):
        if size != _BYTES[argument.kind]:
            raise failed(
                f"{launch.entry}: argument {position} takes {size} bytes, the plan passes the {argument.kind} "
                f"{argument.name} of {_BYTES[argument.kind]}", limit=argument.name, asked=_BYTES[argument.kind],
                available=size, unit="bytes",
            )  # fmt: skip


def _word(driver: Driver, launch: Launch, argument: Argument, shape: Shape, addresses: Mapping[str, int]) -> Any:
    """Return one argument as ctypes passes it; raises Ended(LaunchFailed)."""
    entry = launch.entry
    if argument.kind == "size":
        value = dict(shape.sizes).get(argument.name)
        if value is None:
            raise failed(f"{entry}: no size {argument.name}")
        if not 0 <= value <= INT_LIMIT:
            raise failed(
                f"{entry}: int {argument.name} = {value} is not in 0..{INT_LIMIT}", limit=argument.name, asked=value,
                available=INT_LIMIT, unit="int",
            )  # fmt: skip
        return ctypes.c_int(value)
    if argument.kind == "tensor_map":
        return _tensor_map(driver, launch, argument, addresses)
    if argument.name not in addresses:
        raise failed(f"{entry}: no {argument.kind} {argument.name}")
    return ctypes.c_uint64(addresses[argument.name])


def _tensor_map(driver: Driver, launch: Launch, argument: Argument, addresses: Mapping[str, int]) -> Any:
    found = next((one for one in launch.tensor_maps if one.name == argument.name), None)
    if found is None or found.buffer not in addresses:
        raise failed(f"{launch.entry}: no tensor map {argument.name}")
    try:
        return encode_tensor_map(
            driver, found.dtype, addresses[found.buffer], found.dims, found.strides_bytes, found.box,
            found.swizzle_bytes,
        )  # fmt: skip
    except (CudaError, KeyError) as error:
        if isinstance(error, CudaError) and error.sticky:
            raise
        said = f"tensor maps have no {error}" if isinstance(error, KeyError) else str(error)
        raise failed(f"{launch.entry}: tensor map {argument.name}: {said}") from None
