"""A standalone C file: ``cc <options> FILE -o bench -lpthread -lm && ./bench`` checks and times the kernel anywhere."""

from __future__ import annotations

from pathlib import Path

from cake_tui.exporters import Bundle, Exporter
from cake_tui.exporters._reference import buffer_order
from cake_tui.exporters._standalone import Standalone


def launches(bundle: Bundle) -> str:
    """Return `cake_launches[]`: a function a launch that runs one task, and how many tasks there are."""
    plan = bundle.lowered.plans[-1]
    sizes, index = dict(plan.shape.sizes), buffer_order(bundle.problem, plan)
    lines = [f"#define CAKE_THREADS {bundle.device.cores}"]
    for at, launch in enumerate(plan.launches):
        arguments = ", ".join(
            str(sizes[one.name]) if one.kind == "size" else f"cake_buffers[{index[one.name]}].data"
            for one in launch.arguments
        )
        lines.append(f"static void cake_task_{at}(const int *task) {{ {launch.entry}(task, {arguments}); }}")
    lines.append("static const struct { void (*task)(const int *); int grid[3]; } cake_launches[] = {")
    for at, launch in enumerate(plan.launches):
        x, y, z = launch.grid
        lines.append(f"  {{cake_task_{at}, {{{x}, {y}, {z}}}}},")
    return "\n".join([*lines, "};", "", ""])


PLUGIN: Exporter = Standalone(
    target="c",
    suffix=".c",
    harness=Path(__file__).with_name("harness.c"),
    launches=launches,
    includes="#include <stddef.h>\n",
    compiler="cc",
    flags=lambda lowered: lowered.options,
    links=("-lpthread", "-lm"),
    words="      (threads: ./bench 4)",
)
