"""Figures of a launch on a GPU: arithmetic, shared memory, caches, memory, latency, occupancy and waves.

Rates are those of the sm_90 generation and scale with the device's multiprocessors and clock; the correction learns
how far a device is from that.
"""

from __future__ import annotations

import math

from cake_tui.ir import program as ir
from cake_tui.ir.cost.figures import Figures
from cake_tui.ir.cost.nests import Nest, Use, Work
from cake_tui.ir.cost.processor import operations
from cake_tui.ir.cost.traffic import moved_bytes
from cake_tui.model.device import Device

LAUNCH_US = 3.0
CLOCK_MHZ = 1700.0
FMA_FLOPS = 256.0  # fp32, a cycle and multiprocessor
TENSOR_FLOPS = {"wgmma": 4096.0, "mma": 2048.0}  # bf16 and f16; tf32 half, 8-bit types twice
SHARED_RATE = 128.0  # bytes a cycle and multiprocessor
L2_RATE = 64.0
MEMORY_GBPS = 2000.0
SECTOR = 32
LATENCY = 700.0  # cycles from memory to a register
BARRIER = 40.0
ADDRESSES = 24
REGISTERS, THREADS, BLOCKS, SMEM = 65536, 2048, 32, 228 << 10
L2_BYTES = 40 << 20
HIDING = 2  # blocks of a multiprocessor, of which one works while the other waits
LINE = 128.0  # bytes
IN_FLIGHT = 16.0  # independent multiply-adds a multiprocessor's scheduler needs to stay busy


def figures_of(nest: Nest, device: Device) -> Figures:
    """Return the times and terms of one launch."""
    sms = max(1, device.cores)
    clock = device.clock_mhz or CLOCK_MHZ
    resident = blocks_resident(nest, device)
    waves = math.ceil(nest.blocks / (sms * resident))
    # Blocks of a wave share a multiprocessor: what counts is how many the fullest one gets.
    fullest = math.ceil(nest.blocks / sms)
    uneven = fullest * sms / nest.blocks
    warps = max(1.0, nest.threads / ir.WARP)
    speed = sms * clock / uneven
    found = Figures()
    flops, tensor = _arithmetic(nest)
    alive = min(1.0, resident * warps * _independent(nest) / (4 * IN_FLIGHT / 4))
    found.times_us["fma"] = flops / FMA_FLOPS / speed / alive
    found.times_us["tensor"] = sum(count / rate for count, rate in tensor) / speed
    found.times_us["shared"] = _shared_bytes(nest) / SHARED_RATE / speed
    near, wasted = _global_bytes(nest)
    found.times_us["l2"] = near / L2_RATE / speed
    memory = (device.memory_gbps or MEMORY_GBPS) * 1e3
    found.times_us["memory"] = moved_bytes(nest.works, device.l2_bytes or L2_BYTES, SECTOR) / memory
    rounds, depth = _exposed(nest)
    found.times_us["latency"] = waves * (rounds * (LATENCY / depth + BARRIER) + LATENCY) / clock
    if depth == 1.0 and fullest < HIDING:
        # Nothing is copied ahead and no other block works meanwhile: waiting comes on top of working.
        found.times_us["latency"] += max(found.times_us[name] for name in ("fma", "tensor", "shared"))
    occupancy = min(1.0, resident * warps * ir.WARP / (device.threads_per_sm or THREADS))
    found.terms = {
        "uneven": math.log(uneven),
        "occupancy": math.log(occupancy),
        "wasted": math.log(wasted),
        "vector": math.log(_vector_bytes(nest) / 16.0),
        "conflicts": math.log(conflicts(nest)),
        "depth": math.log(depth),
        "sums": math.log(_independent(nest)) / 2.0,
    }
    return found


def blocks_resident(nest: Nest, device: Device) -> int:
    """Blocks that share a multiprocessor, by threads, registers, shared memory and slots; at least 1."""
    warps = math.ceil(max(1.0, nest.threads) / ir.WARP)
    registers = ADDRESSES
    smem = 0.0
    for buffer in nest.buffers.values():
        shape = [nest.number(extent) for extent in buffer.shape]
        if buffer.space == "shared":
            inner = shape[ir.inner_axis(buffer)] if shape else 1.0
            rows = math.prod(shape) / max(1.0, inner) * (inner + nest.number(buffer.pad))
            smem += rows * ir.DTYPE_BYTES[buffer.dtype]
        elif buffer.space == "register":
            each = math.prod(shape) / max(1.0, nest.threads)
            if isinstance(buffer.spread, ir.Threads):
                each = math.prod(nest.number(count) for count in buffer.spread.each)
            registers += math.ceil(max(1.0, each) * ir.DTYPE_BYTES[buffer.dtype] / 4)
    limits = (
        (device.threads_per_sm or THREADS) // (warps * ir.WARP),
        (device.registers_per_sm or REGISTERS) // (warps * ir.WARP * min(255, registers)),
        int((device.smem_per_sm_bytes or SMEM) // (smem + 1024)),
        device.blocks_per_sm or BLOCKS,
    )
    return max(1, int(min(limits)))


def _arithmetic(nest: Nest) -> tuple[float, list[tuple[float, float]]]:
    """Flops on the ordinary units, and pairs of flops and rate for tensor cores."""
    flops = 0.0
    tensor: list[tuple[float, float]] = []
    for work in nest.works:
        statement = work.statement
        if isinstance(statement, ir.Contract):
            factors = [use for use in work.uses if not use.writes]
            left, right = factors[0], factors[1]  # as the statement names them; the target's old value comes behind
            product = 2.0 * left.elements * right.elements * work.runs
            if statement.op == "outer":
                flops += product
            else:
                shared_axis = right.lengths[-2] if len(right.lengths) > 1 else 1.0
                rate = TENSOR_FLOPS[statement.op] * {"tf32": 0.5, "u8": 2.0, "i8": 2.0}.get(statement.math, 1.0)
                tensor.append((product / max(1.0, shared_axis), rate))
        elif not isinstance(statement, ir.Declare | ir.Copy) and work.uses:
            elements = max(use.elements for use in work.uses)
            flops += 2.0 * elements * operations(statement) * work.runs
    return flops, tensor


def _hot(nest: Nest) -> Work | None:
    """The product that runs most often, else the statement that moves most."""
    products = [work for work in nest.works if isinstance(work.statement, ir.Contract)]
    found = products or [work for work in nest.works if work.uses]
    return max(found, key=lambda work: work.runs * max(use.elements for use in work.uses), default=None)


def _independent(nest: Nest) -> float:
    """Sums that each thread of the hottest statement keeps going at once."""
    hot = _hot(nest)
    if hot is None or not hot.uses:
        return 1.0
    target = next((use for use in hot.uses if use.writes), hot.uses[0])
    return max(1.0, target.elements / max(1.0, nest.threads))


def _block(nest: Nest) -> tuple[float, float]:
    """Rows and columns of threads that a warp covers in the hottest statement's target."""
    hot = _hot(nest)
    for use in hot.uses if hot is not None else ():
        if use.writes and isinstance(use.buffer.spread, ir.Threads):
            across = [nest.number(count) for count in use.buffer.spread.threads]
            columns = min(float(ir.WARP), across[-1])
            return ir.WARP / columns, columns
    return 1.0, float(ir.WARP)


def _shared_bytes(nest: Nest) -> float:
    """Bytes that the load unit hands to warps: shared memory, and operands that products read where they lie."""
    warps = max(1.0, nest.threads / ir.WARP)
    rows, columns = _block(nest)
    factor = conflicts(nest)
    total = 0.0
    for work in nest.works:
        product = isinstance(work.statement, ir.Contract)
        if product and work.statement.op == "wgmma":  # type: ignore[union-attr]
            continue  # the tensor unit reads shared memory by itself, at its own pace
        handed = _handed(nest, work)
        if handed is not None:
            total += handed
            continue
        for use in work.uses:
            if use.buffer.space != "shared":
                continue
            size = use.elements * use.element_bytes * work.runs
            if product or (
                work.loops and use.elements * 4 <= nest.threads * 16 and len(use.lengths) > 1 and not use.writes
            ):
                # a row or column of a tile, wanted by many threads: each warp draws its own part of it
                mine = rows if use.lengths[-1] == 1 else columns
                of_all = max(1.0, (nest.threads / ir.WARP) / max(1.0, _share(nest, mine)))
                size *= min(warps, of_all) * (factor if use.lengths[-1] == 1 else 1.0)
            total += size
    return total


def _handed(nest: Nest, work: Work) -> float | None:
    """Bytes of the operands of an outer product, as each thread gets them; None for other statements.

    A thread takes its elements of both operands, and equal addresses within a warp are no cheaper: the way to the
    registers is as wide as 32 words. From global memory each line that a warp touches takes a turn of its own.
    """
    target = next((use for use in work.uses if use.writes), None)
    if not isinstance(work.statement, ir.Contract) or target is None or work.statement.op != "outer":
        return None
    spread = target.buffer.spread
    if not isinstance(spread, ir.Threads) or len(spread.threads) != 2:
        return None
    threads = [nest.number(count) for count in spread.threads]
    each = [nest.number(count) for count in spread.each]
    fastest = target.buffer.order[-1] if target.buffer.order else 1
    lanes = min(float(ir.WARP), threads[fastest])
    across = [lanes if axis == fastest else ir.WARP / lanes for axis in (0, 1)]
    words = 0.0
    for axis, use in enumerate([use for use in work.uses if not use.writes and use.buffer is not target.buffer][:2]):
        if use.buffer.space == "register":
            continue
        if use.buffer.space == "shared":
            words += each[axis] * (conflicts(nest) if axis == 0 else 1.0)
        else:
            inner = use.lengths[ir.inner_axis(use.buffer)] > 1
            words += each[axis] * max(1.0, across[axis] * use.element_bytes / LINE if inner else across[axis])
    return words * SHARED_RATE * math.prod(threads) / ir.WARP * work.runs


def _share(nest: Nest, mine: float) -> float:
    """Into how many parts the warps of a block divide a row or column."""
    hot = _hot(nest)
    for use in hot.uses if hot is not None else ():
        if use.writes and isinstance(use.buffer.spread, ir.Threads):
            across = [nest.number(count) for count in use.buffer.spread.threads]
            whole = across[0] if mine != min(float(ir.WARP), across[-1]) else across[-1]
            return max(1.0, whole / max(1.0, mine))
    return 1.0


def conflicts(nest: Nest) -> float:
    """How many times a column read of a shared tile is repeated because its rows meet in the same banks."""
    rows, _ = _block(nest)
    worst = 1.0
    for work in nest.works:
        if not isinstance(work.statement, ir.Contract | ir.Copy | ir.Assign):
            continue
        for use in work.uses:
            inner = ir.inner_axis(use.buffer)
            column = (
                use.buffer.space == "shared" and len(use.lengths) > 1 and use.lengths[inner] == 1 and not use.writes
            )
            if column and not use.buffer.swizzle and rows > 1:
                each = max(1.0, use.lengths[-2] / max(1.0, rows * max(1.0, nest.threads / ir.WARP)))
                step = int(use.pitch * each * use.element_bytes / 4) or 1
                banks = ir.WARP // math.gcd(step, ir.WARP)
                worst = max(worst, rows / min(rows, banks))
    return worst


def _global_bytes(nest: Nest) -> tuple[float, float]:
    """Bytes between the second level and the multiprocessors, and how much of them whole sectors waste."""
    wanted = drawn = 0.0
    for work in nest.works:
        for use in work.uses:
            if use.buffer.space not in ("param", "workspace") or not use.lengths:
                continue
            size = use.elements * use.element_bytes * work.runs
            run = use.lengths[-1] * use.element_bytes
            # An index that goes on within the row finds the rest of its sector in the first level.
            inner = work.loops[-1].name if work.loops else ""
            if use.moves[-1].get(inner, 0.0) == 1.0:
                run *= min(work.loops[-1].trips, SECTOR / use.element_bytes)
            wanted += size
            drawn += size * max(1.0, SECTOR / max(run, 1.0))
    return drawn, max(1.0, drawn / wanted) if wanted else 1.0


def _vector_bytes(nest: Nest) -> float:
    """Bytes an instruction moves between global memory and a thread, over all of them, weighed by bytes."""
    total = weight = 0.0
    for work in nest.works:
        for use in work.uses:
            if use.buffer.space in ("param", "workspace"):
                size = use.elements * use.element_bytes * work.runs
                total += size * _width(nest, work, use)
                weight += size
    return max(1.0, total / weight) if weight else 16.0


def _width(nest: Nest, work: Work, use: Use) -> float:
    if isinstance(work.statement, ir.Copy) and work.statement.kind == "tma_copy":
        return 16.0
    vector = getattr(work.statement, "vector", None)
    return min(16.0, use.element_bytes * (nest.number(vector) if vector is not None else 1.0))


def _exposed(nest: Nest) -> tuple[float, float]:
    """Rounds of a block that wait for memory one after another, and how many of them overlap."""
    rounds, depth = 0.0, 1.0
    for work in nest.works:
        loads = any(use.buffer.space in ("param", "workspace") and not use.writes for use in work.uses)
        inside = [loop for loop in work.loops if not loop.grid]
        if not loads or not inside:
            continue
        mine = math.prod(loop.trips for loop in inside)
        overlap = max((loop.stages for loop in inside), default=0.0)
        if not isinstance(work.statement, ir.Copy):
            overlap = max(overlap, inside[-1].unroll, 4.0)  # a thread has several loads in flight
        if mine / max(1.0, overlap) > rounds / depth:
            rounds, depth = mine, max(1.0, overlap)
    return rounds, depth
