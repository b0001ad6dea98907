"""Which backend and device a command works on: ``--backend auto|cuda|cpu|simulated`` and ``--device UUID|INDEX``."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

import msgspec

from cake_tui import registry
from cake_tui.backends import Backend
from cake_tui.errors import ENVIRONMENT, UserError
from cake_tui.model.device import Device
from cake_tui.monitors import Monitor

_AUTO = ("cuda", "cpu")  # in this order


@dataclass(frozen=True)
class Chosen:
    """A backend by name, and one of its devices."""

    name: str
    backend: Backend
    device: Device
    notice: str = ""  # what was asked for first, and why it is not this


def add_device_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--backend`` and ``--device``."""
    names = ("auto", *registry.names("backends"))
    parser.add_argument("--backend", default="auto", choices=names, help="what compiles and runs kernels (auto)")
    parser.add_argument(
        "--device",
        metavar="UUID|INDEX",
        help="which device of the backend (the first); simulated: SURFACE,NAME=VALUE,...",
    )


def choose(args: argparse.Namespace) -> Chosen:
    """Return what the arguments ask for; raises UserError (ENVIRONMENT) naming what is missing."""
    known = registry.names("backends")
    if args.backend != "auto":
        return _chosen(args.backend, args.device)
    reasons: list[str] = []
    for name in (name for name in _AUTO if name in known):
        try:
            chosen = _chosen(name, args.device)
            return replace(chosen, notice=_fallen_back(chosen, reasons) if args.device is None else "")
        except UserError as error:
            if error.exit_code != ENVIRONMENT and args.device is None:
                raise
            reasons.append(f"{name}: {error}")
    raise UserError("no device to work on: " + "; ".join(reasons), ENVIRONMENT)


def _fallen_back(chosen: Chosen, reasons: list[str]) -> str:
    """Say what was looked for before; empty where nothing was."""
    return f"running on {chosen.name} ({chosen.device.name}): {'; '.join(reasons)}" if reasons else ""


def with_threads(chosen: Chosen, threads: int) -> Chosen:
    """Return the device with so many of its cores in use; 0 leaves them all."""
    if not 0 < threads < chosen.device.cores:
        return chosen
    return replace(chosen, device=msgspec.structs.replace(chosen.device, cores=threads))


def monitor_of(device: Device) -> Monitor | None:
    """Return the first monitor that applies to a device."""
    for name in registry.names("monitors"):
        monitor: Monitor | None = registry.load("monitors", name)(device)
        if monitor is not None:
            return monitor
    return None


def _chosen(name: str, wanted: str | None) -> Chosen:
    backend: Backend = registry.load("backends", name)
    made = getattr(backend, "device", None)  # simulated devices are made to order
    if wanted is not None and made is not None:
        return Chosen(name, backend, made(wanted))
    devices = backend.devices()
    if wanted is None:
        return Chosen(name, backend, devices[0])
    for index, device in enumerate(devices):
        if wanted in (str(index), device.uuid):
            return Chosen(name, backend, device)
    listed = ", ".join(f"{index} ({device.uuid})" for index, device in enumerate(devices))
    raise UserError(f'--device: no device "{wanted}" on {name}; there: {listed}')
