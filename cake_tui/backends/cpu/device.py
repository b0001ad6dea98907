"""What this machine's processor is: cores, vectors, caches and the architecture that compilers are asked for."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from cake_tui.model.device import Device

CPU = Path("/sys/devices/system/cpu")

# Feature levels of the x86-64 psABI: what /proc/cpuinfo must show for each, highest first.
X86_LEVELS = (
    ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}, 64, 32),
    ("x86-64-v3", {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}, 32, 16),
    ("x86-64-v2", {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"}, 16, 16),
    ("x86-64", set[str](), 16, 16),
)


def local_device() -> Device:
    """Describe this machine; what cannot be read is 0 or None, and so are rates, which have to be measured."""
    about = _cpuinfo()
    arch, vector_bytes, vector_registers = _architecture(about)
    cores = physical_cores()
    clock_mhz = _clock_mhz(about)
    caches = _caches()
    return Device(
        kind="cpu", target="c", name=about.get("model name", platform.machine()), uuid=f"cpu:{machine_id()}", arch=arch,
        cores=cores, clock_mhz=clock_mhz, vector_bytes=vector_bytes,
        vector_registers=vector_registers, l1_bytes=caches.get(1, 0), l2_bytes=caches.get(2, 0),
        l3_bytes=caches.get(3, 0), line_bytes=caches.get(0, 64),
    )  # fmt: skip


def physical_cores() -> int:
    """Count the physical cores that this process may use, within the control group's quota; at least 1."""
    cores = len(core_processors())
    quota, _, period = _text(Path("/sys/fs/cgroup/cpu.max")).partition(" ")
    if quota.isdigit() and period.isdigit():
        cores = min(cores, -(-int(quota) // int(period)))
    return max(cores, 1)


def core_processors() -> tuple[int, ...]:
    """Return one logical processor of each physical core that this process may use."""
    places: dict[object, int] = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        topology = CPU / f"cpu{cpu}" / "topology"
        package, core = _text(topology / "physical_package_id"), _text(topology / "core_id")
        places.setdefault((package, core) if core else cpu, cpu)
    return tuple(places.values())


def last_level_bytes() -> int:
    """Return what all caches of the outermost level hold together; a machine may have many."""
    found: dict[str, int] = {}
    highest = 0
    for entry in sorted(CPU.glob("cpu[0-9]*/cache/index*")):
        level, size = _text(entry / "level"), _text(entry / "size")
        if not level.isdigit() or int(level) < highest or _text(entry / "type") == "Instruction":
            continue
        if int(level) > highest:
            highest, found = int(level), {}
        found[_text(entry / "shared_cpu_list") or str(entry)] = _bytes(size)
    return sum(found.values())


def machine_id() -> str:
    """Return the machine's id; the boot's, then the host's name, where it has none."""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id", "/proc/sys/kernel/random/boot_id"):
        found = _text(Path(path))
        if found:
            return found
    return platform.node() or "unknown"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _cpuinfo() -> dict[str, str]:
    """Return the first processor's entries of /proc/cpuinfo."""
    first = _text(Path("/proc/cpuinfo")).split("\n\n")[0]
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in first.splitlines())}


def _architecture(about: dict[str, str]) -> tuple[str, int, int]:
    """Return the architecture's exact name, bytes of the widest vector register and how many there are."""
    if platform.machine() in ("x86_64", "AMD64"):
        flags = set(about.get("flags", "").split())
        needed: set[str] = set()
        for position, (name, _, vector_bytes, registers) in enumerate(X86_LEVELS):
            needed = set().union(*(features for _, features, _, _ in X86_LEVELS[position:]))
            if needed <= flags or not needed:
                return name, vector_bytes, registers
    return "native", 16 if platform.machine() == "aarch64" else 0, 32 if platform.machine() == "aarch64" else 0


def _clock_mhz(about: dict[str, str]) -> float | None:
    highest = _text(CPU / "cpu0" / "cpufreq" / "cpuinfo_max_freq")
    if highest.isdigit():
        return int(highest) / 1e3
    try:
        return float(about["cpu MHz"])
    except (KeyError, ValueError):
        return None


def _caches() -> dict[int, int]:
    """Return bytes by level (data or unified), and the line's bytes under 0."""
    found: dict[int, int] = {}
    for entry in sorted((CPU / "cpu0" / "cache").glob("index*")):
        if _text(entry / "type") == "Instruction":
            continue
        level, size, line = (_text(entry / name) for name in ("level", "size", "coherency_line_size"))
        if level.isdigit() and _bytes(size):
            found[int(level)] = _bytes(size)
        if line.isdigit():
            found[0] = int(line)
    return found


def _bytes(size: str) -> int:
    """Read a size as sysfs writes it, ``32768K``; 0 where it is none."""
    number = size.rstrip("KMG")
    return int(number) * {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(size[-1:], 1) if number.isdigit() else 0
