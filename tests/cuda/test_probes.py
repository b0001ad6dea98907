"""The check's own kernels agree with numpy: comparison by every rule, differences, guards, what was left unwritten."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pytest

from cake_tui.backends._bounds import Rule, compare
from cake_tui.backends.cuda.driver import Driver
from cake_tui.backends.cuda.memory import POISONS
from cake_tui.backends.cuda.probes import Probes
from cake_tui.model.device import Device
from tests.cuda.jobs import problem_of

pytestmark = pytest.mark.cuda

Array = npt.NDArray[Any]
NAMES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i32": np.int32, "u8": np.uint8}


class OnDevice:
    """Copies arrays to the device, and keeps them there."""

    def __init__(self, driver: Driver, probes: Probes) -> None:
        self.driver, self.probes = driver, probes

    def put(self, array: Array) -> int:
        whole = np.ascontiguousarray(array)
        address = self.driver.allocate(whole.nbytes)
        self.driver.upload(address, whole.ctypes.data, whole.nbytes, self.probes.stream)
        self.driver.synchronize(self.probes.stream)
        return address


@pytest.fixture(scope="module")
def on_device(device: Device) -> OnDevice:
    driver = Driver()
    driver.current(driver.find(device.uuid))
    return OnDevice(driver, Probes(driver, device.arch, device.cores, driver.stream()))


@pytest.mark.parametrize("rule", ["random", "bits", "rounded"])
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "i32", "u8"])
@pytest.mark.parametrize("size", [0.0, 1e-7, 1e-3])
def test_comparison_is_numpys(on_device: OnDevice, rule: Rule, dtype: str, size: float) -> None:
    random = np.random.default_rng(3)
    shape = (67, 41)
    value = random.standard_normal(shape) * 4
    value[0, :8] = [0.0, -0.0, 1e-42, -1e-300, np.inf, -np.inf, np.nan, 3.0]
    scale = np.abs(random.standard_normal(shape)) + 1.0
    scale[0, 2:4] = 1e-45
    with np.errstate(all="ignore"):
        found = (value + size * random.standard_normal(shape)).astype(NAMES[dtype])
    if dtype in ("f32", "f64", "f16"):
        found[5, 7] = np.nan
    problem = problem_of()
    expected = compare(found, value, scale, problem, rule)
    got = on_device.probes.compare(
        on_device.put(found), dtype, shape, on_device.put(value), on_device.put(scale), problem, rule
    )  # fmt: skip
    for name in ("bad_elements", "elements", "nans", "first_index"):
        assert getattr(got, name) == getattr(expected, name), name
    for name in ("max_abs_err", "worst_unit", "bound_share", "absolute_share", "units_share"):
        assert getattr(got, name) == pytest.approx(getattr(expected, name), rel=1e-12), name


def test_rows_are_compared_where_they_lie(on_device: OnDevice) -> None:
    random = np.random.default_rng(4)
    found = random.standard_normal((50, 9)).astype(np.float32)
    rows = [3, 17, 49]
    value, scale = found[rows].astype(np.float64), np.ones((3, 9))
    value[1, 4] += 1.0
    address = on_device.put(np.array(rows, np.int64))
    got = on_device.probes.compare(
        on_device.put(found), "f32", found.shape, on_device.put(value), on_device.put(scale), problem_of(), "random",
        (address, len(rows)),
    )  # fmt: skip
    assert (got.bad_elements, got.elements, got.first_index) == (1, 27, (17, 4))


@pytest.mark.parametrize("size", [1, 15, 16, 17, 4096, 100_003])
def test_differences_are_counted_and_placed(on_device: OnDevice, size: int) -> None:
    one = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    other = one.copy()
    first, same = on_device.put(one), on_device.put(other)
    assert on_device.probes.differing(first, same, size).count == 0
    places = sorted({0, size // 2, size - 1})
    other[places] ^= 0x40
    found = on_device.probes.differing(first, on_device.put(other), size)
    assert (found.count, found.first, found.last) == (len(places), places[0], places[-1])
    hashed = on_device.probes.hashed_all([(at, size) for at in (first, same, on_device.put(other))])
    assert hashed[0] == hashed[1]
    assert hashed[0] != hashed[2]


def test_a_hash_hangs_on_the_order(on_device: OnDevice) -> None:
    ordered = np.arange(1000, dtype=np.uint32)
    swapped = ordered.copy()
    swapped[[3, 900]] = swapped[[900, 3]]
    pieces = [(on_device.put(array), array.nbytes) for array in (ordered, swapped, ordered)]
    first, second, third = on_device.probes.hashed_all(pieces)
    assert first == third != second


def test_bytes_unlike_a_word_are_found(on_device: OnDevice) -> None:
    words = np.full(300, 0x7FC5A5A5, np.uint32)
    address = on_device.put(words)
    assert on_device.probes.unlike_word(address, 0x7FC5A5A5, words.nbytes).count == 0
    words[100] = 0x7FC5A500
    found = on_device.probes.unlike_word(on_device.put(words), 0x7FC5A5A5, words.nbytes)
    assert (found.count, found.first, found.last) == (1, 400, 400)


@pytest.mark.parametrize("words", [1, 2])
def test_elements_that_still_hold_the_poison_are_counted(on_device: OnDevice, words: int) -> None:
    one = np.arange(1, 401, dtype=np.uint32).reshape(-1, words)
    other = one.copy()
    for row in (7, 90):
        one[row], other[row] = POISONS
    one[20] = POISONS[0]  # only once: what it wrote happens to look like poison
    if words == 2:
        one[40, 0], other[40, 0] = POISONS  # half an element is written
    first, second = on_device.put(one), on_device.put(other)
    assert on_device.probes.left_over(first, second, len(one), words, POISONS) == (2, 7)
    assert on_device.probes.left_over(first, None, len(one), words, POISONS) == (3, 7)


def test_the_clock_between_two_stamps_is_the_devices(on_device: OnDevice, device: Device) -> None:
    launch, _ = on_device.probes.multiply_add(4096)
    for number in (4, 5, 6, 7):
        on_device.probes.stamp(number)
        launch.put(on_device.probes.stream)
    on_device.driver.synchronize(on_device.probes.stream)
    assert on_device.probes.last_stamp() == 7
    rates = on_device.probes.gigahertz(4, 2)
    assert len(rates) == 2
    for rate in rates:
        assert rate is not None
        assert 0.2 < rate < 1.2 * (device.clock_mhz or 3000.0) / 1e3


def test_results_are_plain_values(on_device: OnDevice) -> None:
    found = on_device.probes.differing(on_device.put(np.zeros(8)), on_device.put(np.ones(8)), 64)
    assert msgspec.json.decode(msgspec.json.encode(found))["count"] == found.count
