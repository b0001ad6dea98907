"""A peer process: cuBLAS through CuPy, or torch, doing the kernel's work in plain fp32, timed on the device."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from cake_tui.backends._inputs import make_inputs
from cake_tui.backends._parent import die_with
from cake_tui.backends._peers import PeerAnswer, PeerOrder, biased, is_plain_product, say, serve
from cake_tui.backends._reference import Referee
from cake_tui.backends.cuda.driver import CudaError, Driver
from cake_tui.ir.expr import parse
from cake_tui.ir.families import axes, inputs_of, operands
from cake_tui.model.problem import ACC, BufferSpec, Problem

FLUSH_FACTOR = 2  # of the last-level cache, written over before each cold run

LEAD_SAMPLES = 5  # as the kernel that it is compared with

RELU = "y = acc + bias; y = y < 0 ? (T)0 : y"  # keeps NaN
GELU = "T x = acc + bias; y = (T)0.5 * x * ((T)1 + erf(x * (T)0.70710678118654752))"
FUSED = {"relu": RELU, "gelu_erf": GELU}


def main() -> None:
    """Answer orders line by line until there are no more."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", required=True, choices=("cublas", "torch"))
    parser.add_argument("--parent", type=int, required=True)
    options = parser.parse_args()
    die_with(options.parent)
    driver = Driver()
    library: Any = _Cupy() if options.peer == "cublas" else _Torch()
    device = driver.find(driver.uuids()[0])
    driver.current(device)
    timer = _Timer(driver, library.stream, FLUSH_FACTOR * driver.attribute(device, "l2_bytes"))
    say(PeerAnswer(version=library.version))

    def prepare(order: PeerOrder) -> Callable[[int, int], int]:
        assert order.problem is not None
        assert order.shape is not None
        host = make_inputs(order.problem, order.shape, "default", order.seed)
        work = library.work(order.problem, host)
        for _ in range(3):  # the library chooses, loads and allocates at first
            work()
        timer.use(work, cold=order.problem.cache == "cold")
        return timer.run

    serve(prepare)


class _Timer:
    """Times work by events: warm as a graph, cold with the cache written over before each run."""

    def __init__(self, driver: Driver, stream: int, flush_bytes: int) -> None:
        self._driver, self._stream = driver, stream
        self._flush_bytes = flush_bytes
        self._flush = 0
        self._events = [driver.event(), driver.event()]
        self._graphs: dict[int, int | None] = {}
        self._work: Callable[[], Any] = lambda: None
        self._cold = False

    def use(self, work: Callable[[], Any], *, cold: bool) -> None:
        """Time this from here on."""
        for graph in self._graphs.values():
            if graph is not None:
                self._driver.forget_graph(graph)
        self._graphs.clear()
        self._work, self._cold = work, cold
        if cold and not self._flush:
            self._flush = self._driver.allocate(self._flush_bytes)

    def run(self, repeats: int, sample_ns: int = 0) -> int:
        """Do the work so often; return nanoseconds on the device, which is at work for a while before."""
        if self._cold:
            return sum(self._cold_run() for _ in range(repeats))
        graph = self._graph(repeats)
        for _ in range(LEAD_SAMPLES if sample_ns else 1):
            self._batch(graph, repeats)
        self._driver.record(self._events[0], self._stream)
        self._batch(graph, repeats)
        self._driver.record(self._events[1], self._stream)
        return self._elapsed_ns()

    def _batch(self, graph: int | None, repeats: int) -> None:
        if graph is not None:
            self._driver.run_graph(graph, self._stream)
            return
        for _ in range(repeats):
            self._work()

    def _cold_run(self) -> int:
        self._driver.fill8(self._flush, 0, self._flush_bytes, self._stream)
        self._driver.record(self._events[0], self._stream)
        self._work()
        self._driver.record(self._events[1], self._stream)
        return self._elapsed_ns()

    def _elapsed_ns(self) -> int:
        self._driver.synchronize(self._stream)
        return round(self._driver.elapsed_us(*self._events) * 1e3)

    def _graph(self, repeats: int) -> int | None:
        """Return the work as a graph, None where the library cannot be recorded."""
        if repeats not in self._graphs:
            self._driver.begin_capture(self._stream)
            try:
                for _ in range(repeats):
                    self._work()
            except Exception:  # noqa: BLE001 - whatever a library raises where it cannot be recorded
                self._graphs[repeats] = None
            try:
                graph: int | None = self._driver.end_capture(self._stream)
                self._driver.prepare_graph(graph or 0, self._stream)
            except CudaError:
                graph = None
            self._graphs.setdefault(repeats, graph)
        return self._graphs[repeats]


class _Cupy:
    """cuBLAS's fp32 product through CuPy, bias and activation in one kernel behind it."""

    def __init__(self) -> None:
        import cupy

        self.cupy = cupy
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._stream.use()
        self.stream = int(self._stream.ptr)
        handle = cupy.cuda.device.get_cublas_handle()
        number = cupy.cuda.cublas.getVersion(handle)
        self.version = f"cuBLAS {number} through CuPy {cupy.__version__}"

    def work(self, problem: Problem, host: Mapping[str, Any]) -> Callable[[], Any]:
        """Return the work to time; other values as CuPy evaluates them."""
        cupy = self.cupy
        arrays = {name: cupy.asarray(array) for name, array in host.items()}
        factors = operands(problem)
        if factors is None or not is_plain_product(problem):
            from cupyx.scipy import special

            referee = Referee(problem, cupy, special.erf)
            return lambda: referee.in_single(arrays)
        a, b = (arrays[spec.name] for spec in factors)
        product = cupy.empty((a.shape[0], b.shape[1]), cupy.float32)
        found = _activation(problem)
        if found is not None:
            function, bias = found
            behind = cupy.ElementwiseKernel("T acc, T bias", "T y", FUSED[function], f"cake_tui_{function}")
            out, row = cupy.empty_like(product), arrays[bias.name]

            def fused() -> None:
                cupy.matmul(a, b, out=product)
                behind(product, row, out)

            return fused
        from cupyx.scipy import special

        referee = Referee(problem, cupy, special.erf)

        def general() -> Any:
            cupy.matmul(a, b, out=product)
            return referee.value_of(product, arrays)

        return general


class _Torch:
    """torch in plain fp32: addmm and the activation."""

    def __init__(self) -> None:
        import torch

        self.torch = torch
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.set_grad_enabled(False)
        self._stream = torch.cuda.Stream()
        torch.cuda.set_stream(self._stream)
        self.stream = int(self._stream.cuda_stream)
        self.version = f"torch {torch.__version__}"

    def work(self, problem: Problem, host: Mapping[str, Any]) -> Callable[[], Any]:
        """Return the work to time; raises ValueError for a kernel that is none of torch's."""
        torch = self.torch
        arrays = {name: torch.from_numpy(array).cuda() for name, array in host.items()}
        torch.cuda.synchronize()
        factors = operands(problem)
        found = _activation(problem)
        if factors is None or found is None:
            return self._elsewise(problem, arrays)
        function, bias = found
        a, b = (arrays[spec.name] for spec in factors)
        row = arrays[bias.name]
        out = torch.empty((a.shape[0], b.shape[1]), device=a.device)
        other = torch.empty_like(out)

        def relu() -> None:
            torch.addmm(row, a, b, out=out)
            torch.relu_(out)

        def gelu() -> None:
            torch.addmm(row, a, b, out=out)
            torch._C._nn.gelu(out, out=other)

        return relu if function == "relu" else gelu

    def _elsewise(self, problem: Problem, arrays: Mapping[str, Any]) -> Callable[[], Any]:
        """Return the work of kernels that are no products: torch's own functions where it has them."""
        torch, inputs = self.torch, list(arrays.values())
        specs = inputs_of(problem)
        read = [f"{spec.name}[{', '.join(axes(spec))}]" for spec in specs]
        values = problem.reference is None and problem.value
        summed = values and problem.family == "reduction" and (problem.combine, len(read)) == ("add", 1)
        if summed and parse(problem.map) == parse(read[0]) and parse(problem.value) == parse(ACC):
            sums = torch.empty(inputs[0].shape[0], device=inputs[0].device)
            return lambda: torch.sum(inputs[0], dim=tuple(range(1, inputs[0].dim())), out=sums)
        if values and len(read) == 2 and parse(problem.value) == parse(f"gelu_erf({' + '.join(read)})"):
            added, out = torch.empty_like(inputs[0]), torch.empty_like(inputs[0])

            def gelu() -> None:
                torch.add(inputs[0], inputs[1], out=added)
                torch._C._nn.gelu(added, out=out)

            return gelu
        raise ValueError(f"torch is not asked to do {problem.value or problem.kernel}")


def _activation(problem: Problem) -> tuple[str, BufferSpec] | None:
    """Return the function and the bias of a product that one kernel behind it finishes."""
    for function in FUSED:
        bias = biased(problem, function)
        if bias is not None:
            return function, bias
    return None


if __name__ == "__main__":
    main()
