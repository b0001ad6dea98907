"""Inputs and references that candidates of a round share, kept on the device and guarded by their hashes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import cupy
import numpy as np

from cake_tui.backends._element import Element, pick
from cake_tui.backends._inputs import make_input
from cake_tui.backends._reference import Reference
from cake_tui.backends.cuda.subject import Gpu
from cake_tui.ir.families import inputs_of
from cake_tui.model.problem import Problem, Shape

SHARE = 0.25  # of the device's memory, at most
THREADS = 12  # numpy draws random numbers without holding the others up
ELEMENT_STREAM = 5
MOST_SEEDS = 6  # a round's, the next one's, and those of the timed inputs

Key = tuple[Shape, str, int]


class Values:
    """One input set of a shape on the device; `element` is one that can be changed, None where there is none."""

    def __init__(self, problem: Problem, host: Mapping[str, np.ndarray[Any, Any]], seed: int) -> None:
        self.arrays = {name: cupy.asarray(np.ascontiguousarray(array)) for name, array in host.items()}
        self.element: Element | None = pick(problem, host, np.random.default_rng([seed % 2**32, ELEMENT_STREAM]))

    @property
    def masters(self) -> dict[str, int]:
        """Addresses of the arrays."""
        return {name: int(array.data.ptr) for name, array in self.arrays.items()}

    def changed(self, bits: int) -> dict[str, Any]:
        """Return the arrays with the element's pattern replaced, in a copy of its own."""
        assert self.element is not None
        copy = self.arrays[self.element.name].copy()
        copy.reshape(-1).view(cupy.uint32)[self.element.index] = bits
        return {**self.arrays, self.element.name: copy}

    def row(self) -> int:
        """Return the element's position along the first axis of its buffer."""
        assert self.element is not None
        return self.element.row(self.arrays)


class Vault:
    """What is kept for one problem; the oldest goes where it takes more than a share of the device's memory."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._problem: Problem | None = None
        self._kept: OrderedDict[tuple[str, Key], Values | Reference] = OrderedDict()
        self._hashes: dict[int, tuple[int, int, str]] = {}  # address -> bytes, seed, hash
        self._seeds: OrderedDict[int, None] = OrderedDict()
        self._most = int(SHARE * gpu.driver.free_and_total()[1])

    def use(self, problem: Problem) -> None:
        """Forget what was kept of another problem."""
        if self._problem != problem:
            self.clear()
            self._problem = problem

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()
        self._hashes.clear()
        self._seeds.clear()
        cupy.get_default_memory_pool().free_all_blocks()

    def prepare(self, shapes: Iterable[Shape], sets: Iterable[str], seed: int) -> None:
        """Draw the inputs of these shapes and sets that are not there yet, several at a time."""
        problem = self._problem
        assert problem is not None
        wanted = [key for shape in shapes for name in sets if ("inputs", key := (shape, name, seed)) not in self._kept]
        specs = inputs_of(problem)
        tasks = [(key, position) for key in wanted for position in range(len(specs))]
        with ThreadPoolExecutor(THREADS) as pool:
            drawn = pool.map(lambda task: _draw(problem, *task), tasks)
            for key in wanted:
                self._keep(("inputs", key), Values(problem, {spec.name: next(drawn) for spec in specs}, key[2]))

    def inputs(self, shape: Shape, input_set: str, seed: int) -> Values:
        """Return one input set."""
        key = ("inputs", (shape, input_set, seed))
        if key not in self._kept:
            self.prepare([shape], [input_set], seed)
        self._seeds.move_to_end(seed)  # the one that was used longest ago goes first
        self._kept.move_to_end(key)
        found = self._kept[key]
        assert isinstance(found, Values)
        return found

    def reference(self, shape: Shape, input_set: str, seed: int, compute: Callable[[], Reference]) -> Reference:
        """Return value and scale, computed once a shape, set and seed."""
        key = ("reference", (shape, input_set, seed))
        if key not in self._kept:
            self._keep(key, dense(compute()))
        self._kept.move_to_end(key)
        found = self._kept[key]
        assert isinstance(found, Reference)
        return found

    def damaged(self, seed: int | None = None) -> bool:
        """Say whether something wrote over what is kept (of one seed, where given); all of it is forgotten then."""
        looked_at = {at: row for at, row in self._hashes.items() if seed in (None, row[1])}
        found = self._gpu.probes.hashed_all([(at, size) for at, (size, _, _) in looked_at.items()])
        if all(now == row[2] for now, row in zip(found, looked_at.values())):
            return False
        self.clear()
        return True

    def _keep(self, key: tuple[str, Key], found: Values | Reference) -> None:
        seed = key[1][2]
        self._kept[key] = found
        arrays = _arrays(found)
        hashes = self._gpu.probes.hashed_all([(int(array.data.ptr), int(array.nbytes)) for array in arrays])
        for array, hashed in zip(arrays, hashes):
            self._hashes[int(array.data.ptr)] = (int(array.nbytes), seed, hashed)
        self._seeds[seed] = None
        self._seeds.move_to_end(seed)
        if len(self._seeds) > MOST_SEEDS:
            oldest, _ = self._seeds.popitem(last=False)
            for other in [one for one in self._kept if one[1][2] == oldest]:
                self._drop(other)
        while sum(size for size, _, _ in self._hashes.values()) > self._most and len(self._kept) > 1:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: tuple[str, Key]) -> None:
        for array in _arrays(self._kept.pop(key)):
            self._hashes.pop(int(array.data.ptr), None)


def _draw(problem: Problem, key: Key, position: int) -> np.ndarray[Any, Any]:
    shape, input_set, seed = key
    return make_input(problem, shape, input_set, seed, position)


def dense(reference: Reference) -> Reference:
    """Return value and scale in float64, each of the value's full shape and dense in memory."""
    values = {name: cupy.ascontiguousarray(value, dtype=cupy.float64) for name, value in reference.values.items()}
    scales = {
        name: cupy.ascontiguousarray(cupy.broadcast_to(cupy.asarray(scale, dtype=cupy.float64), values[name].shape))
        for name, scale in reference.scales.items()
    }
    return Reference(values, scales)


def _arrays(found: Values | Reference) -> list[Any]:
    if isinstance(found, Values):
        return list(found.arrays.values())
    return [*found.values.values(), *found.scales.values()]
