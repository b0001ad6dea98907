"""Two devices for the tests of laws and cost: an H200 and a desktop-like CPU with AVX-512."""

from __future__ import annotations

from cake_tui.model.device import Device

H200 = Device(
    kind="cuda", target="cuda", name="NVIDIA H200", uuid="GPU-0", arch="sm_90a", cores=132, clock_mhz=1980.0,
    peak_gflops=66900.0, memory_gbps=4800.0, l2_bytes=60 << 20, threads_per_block=1024, threads_per_sm=2048,
    blocks_per_sm=32, registers_per_thread=255, registers_per_sm=65536, smem_per_block_bytes=232448,
    smem_per_sm_bytes=233472, capability=90,
)  # fmt: skip
CPU = Device(
    kind="cpu", target="c", name="CPU", uuid="cpu:0", arch="x86-64-v4", cores=2, clock_mhz=2600.0, peak_gflops=300.0,
    memory_gbps=20.0, vector_bytes=64, vector_registers=32, l1_bytes=49152, l2_bytes=1 << 20, l3_bytes=32 << 20,
)  # fmt: skip
