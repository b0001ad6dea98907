"""Bundles made without a session: a real lowered kernel and figures that are told apart easily."""

from __future__ import annotations

import msgspec

from cake_tui import ir, kernels, registry
from cake_tui.exporters import Bundle
from cake_tui.model.problem import Problem, Shape
from cake_tui.model.row import Peer
from cake_tui.model.schedule import Schedule
from tests.ir.devices import H200


def problem(kernel: str = "matmul_bias_relu", m: int = 33, n: int = 47, k: int = 65) -> Problem:
    loaded = kernels.load(kernel, target="c")
    return msgspec.structs.replace(loaded, shapes=(Shape((("M", m), ("N", n), ("K", k))),))


def bundle(kernel: str = "matmul_bias_relu", structure: str = "packed", **changes: object) -> Bundle:
    device = registry.load("backends", "simulated").devices()[0]
    device = msgspec.structs.replace(device, kind="cpu", name="a CPU", cores=2)
    wanted = problem(kernel)
    schedule: Schedule = ir.default_schedule(wanted, structure, "c", device)
    program = ir.build(wanted, schedule, "c", device, runtime_sizes=False)
    made = Bundle(
        session="first", candidate=12, problem=wanted, device=device,
        lowered=ir.lower(program, "c", device.arch, wanted.shapes), schedule=schedule.text,
        lineage=("0: start: 150 us", "12: use_packed_panels(): 3.25 us"), time_us=3.25, throughput_tflops=0.0621,
        baseline_us=150.0, pair_noise=0.004, max_abs_err=1e-6, exported_at="2026-11-29T12:00:00Z",
        peers={"numpy": Peer(avg_us=4.0, ratio=1.231, against=12, threads=2, version="numpy 2.4")},
        versions={"cake_tui": "0.1.0"},
    )  # fmt: skip
    return msgspec.structs.replace(made, **changes)


def cuda_bundle(structure: str = "pipelined", **changes: object) -> Bundle:
    """The same on an H200; odd sizes in m, so that tails are there."""
    loaded = kernels.load("matmul_bias_relu", target="cuda")
    wanted = msgspec.structs.replace(loaded, shapes=(Shape((("M", 190), ("N", 132), ("K", 260))),))
    schedule = ir.default_schedule(wanted, structure, "cuda", H200)
    program = ir.build(wanted, schedule, "cuda", H200, runtime_sizes=False)
    lowered = ir.lower(program, "cuda", H200.arch, wanted.shapes)
    made = msgspec.structs.replace(bundle(), problem=wanted, device=H200, lowered=lowered, schedule=schedule.text)
    return msgspec.structs.replace(made, **changes)
