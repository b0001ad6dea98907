"""Evidence for rules: a measured case as TOML states it, laid over one ordinary candidate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from cake_tui.rules import Evidence

ORDINARY: dict[str, Any] = {
    "problem": {
        "kernel": "matmul_bias_relu",
        "family": "contraction",
        "value": "relu(acc + bias[n])",
        "buffers": [
            {"name": "a", "dtype": "f32", "shape": ["M", "K"]},
            {"name": "b", "dtype": "f32", "shape": ["K", "N"]},
            {"name": "bias", "dtype": "f32", "shape": ["N"]},
            {"name": "y", "dtype": "f32", "shape": ["M", "N"], "role": "out"},
        ],
        "shapes": [{"sizes": [["M", 512], ["N", 512], ["K", 512]]}],
        "minimum_work": "2*M*N*K",
    },
    "device": {
        "kind": "cpu",
        "target": "c",
        "name": "two cores",
        "uuid": "cpu:0",
        "arch": "x86-64-v4",
        "cores": 2,
        "peak_gflops": 300.0,
        "memory_gbps": 20.0,
        "vector_bytes": 64,
        "vector_registers": 32,
        "l1_bytes": 32768,
        "l2_bytes": 1048576,
        "l3_bytes": 33554432,
    },
    "schedule": {
        "structure": "packed",
        "knobs": [
            ["block_k", 256], ["pad", 0], ["shared", True], ["thread_m", 8], ["thread_n", 2],
            ["threads_x", 4], ["threads_y", 4], ["unroll", 1], ["vector", 16],
        ],
    },
    "outcome": {"kind": "Measured", "step": "gate", "verdict": "slower", "avg_us": 1500.0},
    "time_us": 1500.0,
    "facts": {
        "compiler": "gcc", "vector_bytes": 64, "vector_share": 0.98, "fma_instructions": 128,
        "spill_stores": 0, "spill_loads": 0,
    },
    "agreement": {"max_abs_err": 1e-6, "rel_err": 1e-6, "worst_unit": 3.0, "bound_share": 0.02},
    "profile": {"source": "static+model", "memory_throughput_pct": 10.5, "sm_busy_pct": 60.0, "imbalance_pct": 2.0},
    "pair_noise": 0.005,
}  # fmt: skip


def evidence(changes: Mapping[str, Any] | None = None) -> Evidence:
    """Return the ordinary candidate, about which no rule has anything to say, with `changes` laid over it.

    Tables are merged; a table ``{none = true}`` stands for None, since TOML has no null.
    """
    return msgspec.convert(_merged(ORDINARY, changes or {}), Evidence)


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(old)
    for key, value in new.items():
        if value == {"none": True}:
            out[key] = None
        elif isinstance(value, Mapping) and isinstance(out.get(key), Mapping) and key != "outcome":
            out[key] = _merged(out[key], value)
        else:
            out[key] = value
    return out
