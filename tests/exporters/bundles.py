"""Bundles made without a session: a real lowered kernel and figures that are told apart easily."""

from __future__ import annotations

import msgspec

from cake_tui import ir, kernels, registry
from cake_tui.exporters import Bundle
from cake_tui.model.device import Device
from cake_tui.model.problem import Problem
from cake_tui.model.row import Peer
from tests.ir.devices import H200

# Odd in all sizes, so that tails are there; multiples of 4 where the copy engine asks for them.
SHAPES = {"row_sum": "R=37,C=1003", "bias_gelu": "M=45,N=67"}
CONTRACTION = {"c": "M=33,N=47,K=65", "cuda": "M=190,N=132,K=260"}


def cpu() -> Device:
    device: Device = registry.load("backends", "simulated").devices()[0]
    return msgspec.structs.replace(device, kind="cpu", name="a CPU", cores=2)


def structures(kernel: str, device: Device) -> list[tuple[str, str]]:
    """A packaged kernel with each of its structures."""
    return [(kernel, structure) for structure in ir.structures(problem(kernel, device), device.target)]


def problem(kernel: str, device: Device) -> Problem:
    shape = SHAPES.get(kernel, CONTRACTION[device.target])
    return kernels.load(kernel, target=device.target, shapes=[shape])


def bundle(
    kernel: str = "matmul_bias_relu", structure: str = "packed", device: Device | None = None,
    wanted: Problem | None = None, knobs: dict[str, int] | None = None, **changes: object,
) -> Bundle:  # fmt: skip
    device = device or cpu()
    wanted = wanted or problem(kernel, device)
    schedule = ir.default_schedule(wanted, structure, device.target, device).with_knobs(knobs or {})
    program = ir.build(wanted, schedule, device.target, device, runtime_sizes=False)
    made = Bundle(
        session="first", candidate=12, problem=wanted, device=device,
        lowered=ir.lower(program, device.target, device.arch, wanted.shapes), schedule=schedule.text,
        lineage=("0: start: 150 us", "12: use_packed_panels(): 3.25 us"), time_us=3.25, throughput_tflops=0.0621,
        over_baseline=100.0, pair_noise=0.004, max_abs_err=1e-6, exported_at="2026-11-29T12:00:00Z",
        peers={"numpy": Peer(avg_us=4.0, ratio=1.231, against=12, threads=2, version="numpy 2.4")},
        versions={"cake_tui": "0.1.0"},
    )  # fmt: skip
    return msgspec.structs.replace(made, **changes)


def cuda_bundle(
    structure: str = "pipelined", kernel: str = "matmul_bias_relu", arch: str = "sm_90a", **changes: object
) -> Bundle:
    """The same on an H200, or on a GPU that is like it but for its architecture."""
    device = msgspec.structs.replace(H200, arch=arch, capability=int(arch.strip("sm_a")))
    return bundle(kernel, structure, device, **changes)  # type: ignore[arg-type]
