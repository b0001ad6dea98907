"""The problem that many tests share: relu(a·b + bias) at 512 cubed, as the packaged kernel has it."""

from __future__ import annotations

from cake_tui.model.problem import BufferSpec, Problem, Shape

MATMUL = Problem(
    kernel="matmul_bias_relu",
    family="contraction",
    value="relu(acc + bias[n])",
    buffers=(
        BufferSpec("a", "f32", ("M", "K")),
        BufferSpec("b", "f32", ("K", "N"), scale="1/sqrt(K)"),
        BufferSpec("bias", "f32", ("N",)),
        BufferSpec("y", "f32", ("M", "N"), role="out"),
    ),
    shapes=(Shape((("M", 512), ("N", 512), ("K", 512))),),
    minimum_work="2*M*N*K",
)
