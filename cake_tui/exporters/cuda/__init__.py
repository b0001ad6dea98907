"""A standalone CUDA file: ``nvcc <options> FILE -o bench && ./bench`` checks and times the kernel anywhere."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cake_tui.exporters import Bundle, Exporter
from cake_tui.exporters._reference import buffer_order
from cake_tui.exporters._standalone import Standalone
from cake_tui.model.lowered import Launch, Lowered, TensorMap

# What cuTensorMapEncodeTiled calls the elements.
MAP_TYPES = {
    "f32": "FLOAT32", "tf32": "FLOAT32", "f64": "FLOAT64", "f16": "FLOAT16", "bf16": "BFLOAT16", "i32": "INT32",
    "u8": "UINT8",
}  # fmt: skip


def flags(lowered: Lowered) -> tuple[str, ...]:
    """Return nvcc's options. With ``-arch=sm_90a`` alone nvcc 13.0 also compiles for sm_90, which lacks setmaxnreg."""
    version = lowered.arch.removeprefix("sm_")
    return ("-O3", "-gencode", f"arch=compute_{version},code=sm_{version}", *lowered.options)


def launches(bundle: Bundle) -> str:
    """Return `cake_prepare()`, once, and `cake_run()`, all launches in order."""
    plan = bundle.lowered.plans[-1]
    sizes, index = dict(plan.shape.sizes), buffer_order(bundle.problem, plan)
    maps = [(launch, one) for launch in plan.launches for one in launch.tensor_maps]
    lines = [
        f"static void *cake_device[{len(index)}];",
        "static void cake_start(const void *kernel, dim3 grid, dim3 block, dim3 cluster, size_t smem,",
        "                       void **arguments);",
        "static void cake_allow(const void *kernel, size_t smem);",
    ]
    if maps:
        lines += [
            "#include <cuda.h>",
            f"#define CAKE_MAPS {len(maps)}",
            "static CUtensorMap cake_maps[CAKE_MAPS];",
            "static void cake_encode(CUtensorMap *map, CUtensorMapDataType type, void *address, unsigned rank,",
            "                        const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,",
            "                        CUtensorMapSwizzle swizzle);",
        ]
    lines.append("static void cake_prepare() {")
    for at, (_, one) in enumerate(maps):
        lines += _encoded(at, one, index)
    lines += [f"  cake_allow((const void *){launch.entry}, {launch.smem_bytes});" for launch in plan.launches]
    lines += ["}", "static void cake_run() {"]
    for launch in plan.launches:
        places = {one.name: at for at, (owner, one) in enumerate(maps) if owner is launch}
        lines += _launched(launch, sizes, index, places)
    return "\n".join([*lines, "}", "", ""])


def _encoded(at: int, one: TensorMap, index: dict[str, int]) -> list[str]:
    swizzle = f"CU_TENSOR_MAP_SWIZZLE_{one.swizzle_bytes}B" if one.swizzle_bytes else "CU_TENSOR_MAP_SWIZZLE_NONE"
    strides = one.strides_bytes or (0,)
    return [
        "  {",
        f"    cuuint64_t dims[] = {_braced(one.dims)}, strides[] = {_braced(strides)};",
        f"    cuuint32_t box[] = {_braced(one.box)};",
        f"    cake_encode(&cake_maps[{at}], CU_TENSOR_MAP_DATA_TYPE_{MAP_TYPES[one.dtype]},",
        f"                cake_device[{index[one.buffer]}], {len(one.dims)}, dims, strides, box, {swizzle});",
        "  }",
    ]


def _launched(launch: Launch, sizes: dict[str, int], index: dict[str, int], maps: dict[str, int]) -> list[str]:
    arguments, declared = [], []
    for one in launch.arguments:
        if one.kind == "size":
            declared.append(f"    int size_{one.name} = {sizes[one.name]};")
            arguments.append(f"&size_{one.name}")
        elif one.kind == "tensor_map":
            arguments.append(f"&cake_maps[{maps[one.name]}]")
        else:
            arguments.append(f"&cake_device[{index[one.name]}]")
    grid, block, cluster = (", ".join(map(str, axes)) for axes in (launch.grid, launch.block, launch.cluster))
    return [
        "  {",
        *declared,
        f"    void *arguments[] = {_braced(arguments)};",
        f"    cake_start((const void *){launch.entry}, dim3({grid}), dim3({block}), dim3({cluster}),",
        f"               {launch.smem_bytes}, arguments);",
        "  }",
    ]


def _braced(values: Iterable[object]) -> str:
    return "{" + ", ".join(map(str, values)) + "}"


PLUGIN: Exporter = Standalone(
    target="cuda",
    suffix=".cu",
    harness=Path(__file__).with_name("harness.cu"),
    launches=launches,
    # 177: a function of the harness that this problem does not need.
    includes="#pragma nv_diag_suppress 177\n#include <cuda_runtime.h>\n#include <stddef.h>\n",
    compiler="nvcc",
    flags=flags,
)
