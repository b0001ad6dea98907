"""Puts the stand-in driver, CuPy and nvcc in the places of the real ones, for processes that are started after that."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).with_name("standin_gpu")
H200 = "GPU-11111111-2222-3333-4444-555555555555"
OTHER = "GPU-00000000-aaaa-bbbb-cccc-dddddddddddd"
MIG = "MIG-99999999-2222-3333-4444-555555555555"
GB = 10**9


class StandIn:
    """The folder that the stand-in driver looks at: which devices there are, and what fails."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._generation = 0
        self.devices((H200, 90, 132, 140 * GB, "NVIDIA H200"))

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs beside `HERE` on its path of modules."""
        return {
            "STANDIN_GPU": str(self.folder), "LD_LIBRARY_PATH": str(self.folder),
            "CAKE_TUI_CUDA_COMPILER": str(HERE / "nvcc"), "XDG_CACHE_HOME": str(self.folder / "cache"),
        }  # fmt: skip

    def devices(self, *devices: tuple[str, int, int, int, str]) -> None:
        """Set UUID, capability, multiprocessors, bytes and name of each device, in CUDA's order."""
        lines = [" ".join(map(str, one)) for one in devices]
        (self.folder / "devices").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def version(self, number: int) -> None:
        """Set the newest CUDA version that the driver serves."""
        (self.folder / "version").write_text(str(number), encoding="utf-8")

    def fail(self, code: int, call: str = "*") -> None:
        """Have a call (all of them) fail from now on, in every process."""
        (self.folder / "new").write_text(f"{call} {code}\n", encoding="utf-8")
        (self.folder / "new").rename(self.folder / "fails")

    def fail_once(self, code: int, call: str, number: int) -> None:
        """Have the so manieth such call of each process fail."""
        (self.folder / "counted").write_text(f"{call} {code} {number}\n", encoding="utf-8")

    def lose(self, code: int) -> None:
        """Have the devices go: every call fails, and after they are mended those of contexts that were there before."""
        self._generation += 1
        (self.folder / "generation").write_text(str(self._generation), encoding="utf-8")
        self.fail(code)

    def mend(self) -> None:
        """Have nothing fail any more."""
        for name in ("fails", "counted"):
            (self.folder / name).unlink(missing_ok=True)

    @property
    def failing(self) -> bool:
        """Whether calls fail now."""
        return (self.folder / "fails").exists()


def stand_in(monkeypatch: pytest.MonkeyPatch, folder: Path) -> StandIn:
    """Return one with an H200; processes started until the test ends find it."""
    library = folder / "driver"
    library.mkdir()
    shutil.copy(_compiled(), library / "libcuda.so.1")
    made = StandIn(library)
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.syspath_prepend(str(HERE))
    return made


def _compiled() -> Path:
    """Compile the driver once a machine and source."""
    source = HERE / "libcuda.c"
    place = Path(tempfile.gettempdir()) / f"cake-tui-standin-gpu-{os.getuid()}"
    place.mkdir(mode=0o700, exist_ok=True)
    made = place / f"libcuda-{source.stat().st_mtime_ns}.so"
    if not made.exists():
        new = place / f"{os.getpid()}.so"
        command = ["cc", "-shared", "-fPIC", "-O1", "-Wl,-soname,libcuda.so.1", "-o", str(new), str(source)]
        subprocess.run(command, check=True, capture_output=True)
        new.rename(made)
    return made
