"""Figures of a launch on a CPU: instruction ports, latency, caches, vector use, spills and uneven work.

Ports and latencies are those of current server cores (two fused multiply-adds and two loads a cycle, four cycles of
latency, about five instructions issued): the correction learns how far a core is from that.
"""

from __future__ import annotations

import math

from cake_tui.ir import program as ir
from cake_tui.ir.cost.figures import Figures
from cake_tui.ir.cost.nests import Nest, Use, Work
from cake_tui.ir.cost.traffic import Traffic
from cake_tui.ir.expr import Call, refs_in
from cake_tui.ir.expr.nodes import walk as parts_of
from cake_tui.model.device import Device

FMA_PORTS = 2.0
LOAD_PORTS = 2.0
STORE_PORTS = 1.0
ISSUE = 5.0
LATENCY = 4.0
COSTLY = 15.0  # cycles of exp, tanh, erf and their like
CLOCK_MHZ = 2500.0
# bytes a cycle and core from the second level, the third and memory
L2_RATE, L3_RATE, MEMORY_RATE = 48.0, 16.0, 5.0
L1, L2, L3 = 32 << 10, 512 << 10, 8 << 20
TASK_US = 0.1
LAUNCH_US = 2.0  # waking the pool and meeting again
_COSTLY_NAMES = frozenset(
    ("exp", "log", "tanh", "erf", "gelu_erf", "gelu_tanh", "silu", "sigmoid", "sin", "cos", "pow")
)


def figures_of(nest: Nest, device: Device) -> Figures:
    """Return the times and terms of one launch."""
    cores = max(1, device.cores)
    cycles_a_us = device.clock_mhz or CLOCK_MHZ
    cycles = [_cycles(work, nest, device) * work.runs for work in nest.works]
    busy = sum(cycles)
    rounds = math.ceil(nest.blocks / cores)
    uneven = rounds / (nest.blocks / cores)
    speed = cycles_a_us * cores / uneven
    found = Figures()
    found.times_us["core"] = (busy / speed) + rounds * TASK_US
    line = device.line_bytes or 64
    levels = (("l2", device.l1_bytes or L1, L2_RATE), ("l3", device.l2_bytes or L2, L3_RATE))
    traffic = Traffic(nest.works, line)
    for name, capacity, rate in levels:
        found.times_us[name] = traffic.moved_bytes(capacity) / rate / speed
    last = (device.l3_bytes or L3) / cores
    rate = device.memory_gbps * 1e3 / cycles_a_us / cores if device.memory_gbps else MEMORY_RATE
    found.times_us["memory"] = _fresh_bytes(traffic, last) / rate / speed
    hot = max(zip(cycles, nest.works), key=lambda pair: pair[0], default=(0.0, None))[1]
    found.terms = _terms(nest, hot, device, uneven)
    return found


def _fresh_bytes(traffic: Traffic, capacity: float) -> float:
    """Bytes from memory: what does not fit the outermost cache; a warm problem that fits moves nothing."""
    whole, line = 0.0, traffic.line_bytes
    for work in traffic.works:
        trips = {loop.name: loop.trips for loop in work.loops}
        whole += sum(use.lines(trips, line) * line for use in work.uses if use.buffer.space in ("param", "workspace"))
    return 0.0 if whole <= capacity else traffic.moved_bytes(capacity)


def lanes_of(nest: Nest, work: Work) -> float:
    """Elements that the statement handles at once: its vector clause, or its target's lanes."""
    vector = getattr(work.statement, "vector", None)
    if vector is not None:
        return max(1.0, nest.number(vector))
    for use in work.uses:
        if isinstance(use.buffer.spread, ir.Lanes) and use.buffer.space == "register":
            return max(1.0, nest.number(use.buffer.spread.count))
    return 1.0


def _cycles(work: Work, nest: Nest, device: Device) -> float:
    """Cycles of one execution: the busiest of the ports, or the chain through an accumulator."""
    statement = work.statement
    if isinstance(statement, ir.Declare):
        return 0.0
    lanes = lanes_of(nest, work)
    width = max(1.0, lanes * 4 / (device.vector_bytes or 16))  # registers that a vector of the program takes
    loads = stores = sums = 0.0
    for use in work.uses:
        if use.buffer.space == "register":
            continue
        count = _accesses(use, lanes) * width
        stores, loads = (stores + count, loads) if use.writes else (stores, loads + count)
    if isinstance(statement, ir.Contract):
        target = next(use for use in work.uses if use.writes)
        sums = _accesses(target, lanes) * width
        loads += spilled(work, nest, device)
    elif isinstance(statement, ir.Assign | ir.Reduce | ir.Pick | ir.Split | ir.Convert | ir.Atomic):
        elements = next((use.elements for use in work.uses if use.writes), 1.0)
        sums = math.ceil(elements / lanes) * width * operations(statement)
    unroll = work.loops[-1].unroll if work.loops else 1.0
    issued = loads + stores + sums + 2.0 / max(1.0, unroll)
    cycles = max(sums / FMA_PORTS, loads / LOAD_PORTS, stores / STORE_PORTS, issued / ISSUE)
    if chained(statement):
        cycles = max(cycles, LATENCY)
    return cycles


def chained(statement: ir.Statement) -> bool:
    """Whether each round waits for the sum of the one before."""
    return isinstance(statement, ir.Contract) or (isinstance(statement, ir.Assign) and statement.op == "+=")


def _accesses(use: Use, lanes: float) -> float:
    """Load or store instructions of a reference: vectors along its last axis, single elements elsewhere."""
    if not use.lengths:
        return 1.0
    along = use.lengths[-1]
    vectors = math.ceil(along / lanes) if lanes > 1 and along >= lanes else along
    return vectors * math.prod(use.lengths[:-1])


def operations(statement: ir.Statement) -> float:
    """Arithmetic instructions an element of a map."""
    value = getattr(statement, "value", None)
    if value is None:
        return 1.0
    count = 0.0
    for node in parts_of(value):
        if isinstance(node, Call):
            count += COSTLY if node.function in _COSTLY_NAMES else 1.0
        elif type(node).__name__ in ("Binary", "Unary"):
            count += 1.0
    refs = sum(len(ref.indices) for ref in refs_in(value))
    return max(1.0, count - refs)


def registers_needed(work: Work, nest: Nest, device: Device) -> float:
    """Vector registers that a product keeps alive: sums, one row of the right side, one element of the left."""
    lanes = lanes_of(nest, work)
    width = max(1.0, lanes * 4 / (device.vector_bytes or 16))
    target = next(use for use in work.uses if use.writes)
    sums = _accesses(target, lanes) * width
    return sums + math.ceil(target.lengths[-1] / lanes if target.lengths else 1.0) * width + 1.0


def spilled(work: Work, nest: Nest, device: Device) -> float:
    """Loads and stores a round because the sums do not fit the registers."""
    if not device.vector_registers:
        return 0.0
    return 2.0 * max(0.0, registers_needed(work, nest, device) - device.vector_registers)


def _terms(nest: Nest, hot: Work | None, device: Device, uneven: float) -> dict[str, float]:
    """Features of the launch's hottest statement."""
    terms = {"uneven": math.log(uneven), "blocks": math.log1p(nest.blocks) / 8.0}
    if hot is None:
        return terms
    lanes = lanes_of(nest, hot)
    terms["vector"] = math.log(max(1.0, lanes) * 4 / (device.vector_bytes or 16))
    terms["guarded"] = float(hot.guarded)
    inner = hot.loops[-1] if hot.loops else None
    terms["unroll"] = math.log(inner.unroll) / 2.0 if inner is not None else 0.0
    terms["rounds"] = math.log1p(inner.trips) / 6.0 if inner is not None else 0.0
    if isinstance(hot.statement, ir.Contract):
        target = next(use for use in hot.uses if use.writes)
        sums = math.prod(target.lengths) / lanes
        loads = sum(_accesses(use, lanes) for use in hot.uses if not use.writes and use.buffer.space != "register")
        terms["sums"] = math.log(sums) / 2.0
        along = int(target.lengths[-1]) if target.lengths else 1
        if lanes == 1:
            # single elements in a row that a compiler may join into vectors of its own, in powers of two
            terms["joined"] = math.log(along & -along) / 2.0
        terms["loads_a_sum"] = math.log(max(loads, 0.25) / sums) / 2.0
        needed, there = registers_needed(hot, nest, device), device.vector_registers or 16
        terms["spill"] = math.log(max(1.0, needed / there))
        terms["idle_ports"] = math.log(max(1.0, LATENCY * FMA_PORTS / sums))
    strides = [
        abs(use.pitch * use.element_bytes)
        for use in hot.uses
        if len(use.extents) > 1 and use.buffer.space != "register"
    ]
    # rows a power of two apart meet in few sets of the cache
    terms["aliased"] = max((1.0 for stride in strides if stride % 2048 == 0), default=0.0)
    return terms
