"""What `doctor` looks at, one function a subject: each says what it found and what to do about it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import resource
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from cake_tui import __version__, registry
from cake_tui.backends import Backend
from cake_tui.cli import _gpu
from cake_tui.cli._found import Found
from cake_tui.config import cache_dir, environment, lock_dir, sessions_dir, user_name
from cake_tui.errors import UserError
from cake_tui.model.device import Device
from cake_tui.store.lock import living_holder, network_file_system, take_device

_LEAST_DISK_BYTES = 2 << 30
_LEAST_FILES = 256


def look() -> Iterator[Found]:
    """Look at everything, quick things first; nothing here raises for a machine that lacks something."""
    yield Found("cake-tui", "ok", f"{__version__}, Python {platform.python_version()}, {platform.platform()}")
    yield from _compiler_and_cpu()
    yield from _limits()
    yield from _clocks()
    yield from _folders()
    yield from _gpu.look()
    yield from _cuda()
    yield from _packages()
    yield _terminal()


def usable() -> bool:
    """Whether any backend that runs kernels for real has a device here."""
    for name in registry.names("backends"):
        if name == "simulated":
            continue
        try:
            backend: Backend = registry.load("backends", name)
            if backend.devices():
                return True
        except UserError:
            continue
    return False


# --- processor and compiler ---------------------------------------------------------------------------


def _compiler_and_cpu() -> Iterator[Found]:
    backend: Backend = registry.load("backends", "cpu")
    try:
        device = backend.devices()[0]
        compiler = backend.probe(device)
    except UserError as error:
        yield Found("compiler", "missing", *_split(str(error)))
        return
    yield Found("compiler", "ok", f"{' '.join(compiler.command)}: {compiler.version}, makes code for {device.arch}")
    yield Found("processor", "ok", _processor(device))
    yield _peaks("peak rates", backend, device)


def _processor(device: Device) -> str:
    caches = ", ".join(
        f"L{level} {size >> 10} KiB"
        for level, size in ((1, device.l1_bytes), (2, device.l2_bytes), (3, device.l3_bytes))
        if size
    )
    vectors = f"{device.vector_registers} vector registers of {device.vector_bytes} bytes"
    return f"{device.name}: {device.cores} cores used, {device.arch}, {vectors}, {caches or 'caches unknown'}"


def _peaks(subject: str, backend: Backend, device: Device) -> Found:
    """Measure what the device reaches, unless a session is timing kernels on it."""
    try:
        lock = take_device(device.uuid, "cake-tui doctor", user_name())
    except UserError as error:
        return Found(subject, "note", *_split(f"not measured: {error}"))
    try:
        found = backend.measured(device)
    except UserError as error:
        return Found(subject, "note", str(error), "feedback does without shares of the machine's peak")
    finally:
        if lock is not None:
            lock.release()
    memory = f"{found.memory_gbps:.0f} GB/s to and from memory" if found.memory_gbps else "memory unknown"
    return Found(subject, "ok", f"measured now: {found.peak_gflops:.0f} GFLOP/s fp32, {memory}")


def _clocks() -> Iterator[Found]:
    """Load and frequency as the gate's monitor reads them."""
    governor = _text(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
    if governor and governor != "performance":
        yield Found("governor", "note", governor, "cpupower frequency-set -g performance makes timings steadier")
    load = os.getloadavg()[0]
    cores = len(os.sched_getaffinity(0))
    busy = load > 0.5 * cores
    do = "end other work before tuning: it is the gate's noise" if busy else ""
    yield Found("load", "note" if busy else "ok", f"{load:.2f} over the last minute on {cores} logical processors", do)


# --- limits and folders -------------------------------------------------------------------------------


def _limits() -> Iterator[Found]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    quota = _text(Path("/sys/fs/cgroup/memory.max"))
    capped = f", control group's limit {int(quota) / 2**30:.1f} GiB" if quota.isdigit() else ""
    yield Found("memory", "ok", f"{memory / 2**30:.1f} GiB{capped}")
    files, processes, stack = (
        resource.getrlimit(limit)[0] for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_STACK)
    )
    few = files != resource.RLIM_INFINITY and files < _LEAST_FILES
    said = f"open files {_limit(files)}, processes {_limit(processes)}, stack {_limit(stack)} bytes"
    yield Found(
        "limits", "note" if few else "ok", said, f"raise open files: ulimit -n {_LEAST_FILES * 4}" if few else ""
    )


def _limit(value: int) -> str:
    return "unlimited" if value == resource.RLIM_INFINITY else str(value)


def _folders() -> Iterator[Found]:
    for subject, folder, do in (
        ("sessions", sessions_dir(), "choose another with --sessions or CAKE_TUI_SESSIONS"),
        ("cache", cache_dir(), "set XDG_CACHE_HOME to a folder that can be written"),
    ):
        yield _folder(subject, folder, do)
    locks = lock_dir()
    found = _folder("device locks", locks, "set CAKE_TUI_LOCKS to a folder that everybody can write")
    held = [holder for path in sorted(locks.glob("*.lock")) if (holder := living_holder(path)) is not None]
    if found.state == "ok" and held:
        said = "; ".join(f'in use by "{one.what}" of {one.who} (PID {one.pid}, since {one.since})' for one in held)
        found = msgspec.structs.replace(found, text=f"{found.text}; {said}")
    yield found


def _folder(subject: str, folder: Path, do: str) -> Found:
    """Say whether files can be made in a folder (or in the nearest one above that exists)."""
    place = folder.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        return Found(subject, "missing", f"{folder}: cannot be written", do)
    free = shutil.disk_usage(place).free
    said = f"{folder}{'' if folder.exists() else ' (not there yet)'}: {free / 2**30:.1f} GiB free"
    kind = network_file_system(place)
    if kind is not None:
        return Found(
            subject, "note", f"{said}, on {kind}", "locks and syncs are slow or unsafe there; use a local disk"
        )
    if free < _LEAST_DISK_BYTES:
        return Found(subject, "note", said, "a session may take 2 GiB (setting disk): make space")
    return Found(subject, "ok", said)


# --- GPU, packages, terminal --------------------------------------------------------------------------


def _cuda() -> Iterator[Found]:
    """Say what the cuda backend finds: each GPU with its limits, the compiler, what the first GPU reaches."""
    if "cuda" not in registry.names("backends"):
        return
    backend: Backend = registry.load("backends", "cuda")
    try:
        devices = backend.devices()
    except UserError as error:
        yield Found("CUDA", "note", *_split(str(error)))
        return
    for index, device in enumerate(devices):
        limits = (
            f"{device.cores} SMs, {device.smem_per_block_bytes >> 10} KiB shared memory a block, "
            f"L2 {device.l2_bytes >> 20} MiB"
        )
        yield Found("CUDA device", "ok", f"{index}: {device.name} ({device.uuid}), {device.arch}, {limits}")
    try:
        compiler = backend.probe(devices[0])
    except UserError as error:
        yield Found("CUDA compiler", "missing", *_split(str(error)))
        return
    yield Found("CUDA compiler", "ok", f"{compiler.version}, makes code for {devices[0].arch}")
    yield _peaks("GPU rates", backend, devices[0])


def _packages() -> Iterator[Found]:
    yield _package("numpy", "numpy", "the check and the peer need it: pip install numpy", needed=True)
    yield _package("textual", "textual", "the screen needs it: pip install textual", needed=True)
    cupy = next((name for name in ("cupy-cuda13x", "cupy-cuda12x", "cupy") if _version(name)), "cupy")
    yield _package(
        "cupy", cupy, "for CUDA: pip install 'cake-tui[cuda13]' or 'cake-tui[cuda12]', as nvidia-smi's CUDA version"
    )
    yield _package("ziglang", "ziglang", "only where there is no C compiler: pip install 'cake-tui[zig]'")
    openai = _package("openai", "openai", "for the llm agent: pip install openai")
    key = (
        "OPENAI_API_KEY is set"
        if environment("OPENAI_API_KEY")
        else "OPENAI_API_KEY is not set (only the llm agent needs it)"
    )
    yield msgspec.structs.replace(openai, text=f"{openai.text}; {key}") if openai.state == "ok" else openai


def _package(module: str, distribution: str, do: str, *, needed: bool = False) -> Found:
    """Say which version is installed, without importing it."""
    if importlib.util.find_spec(module) is None:
        return Found(module, "missing" if needed else "note", "not installed", do)
    return Found(module, "ok", _version(distribution) or "installed")


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _terminal() -> Found:
    columns, rows = shutil.get_terminal_size()
    encoding = sys.stdout.encoding or "unknown"
    said = f"{environment('TERM', 'TERM is not set')}, {columns} x {rows}, {encoding}"
    if "utf" not in encoding.lower():
        return Found("terminal", "note", said, "characters it lacks show as ?; set LANG to a UTF-8 locale, as C.UTF-8")
    return Found("terminal", "ok", said)


def _split(message: str) -> tuple[str, str]:
    """Part an error into what was found and what to do."""
    what, _, do = message.partition("; ")
    return what, do


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
