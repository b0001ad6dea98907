"""The evaluator's side of a GPU: owns the context, takes jobs, ends the process where the device is of no use to it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from cake_tui import registry
from cake_tui.backends._reference import Referee, readable
from cake_tui.backends._selftest import self_test
from cake_tui.backends.cuda.driver import CudaError, Driver
from cake_tui.backends.cuda.peers import Peers, time_peer
from cake_tui.config import show_only_gpu
from cake_tui.errors import BUG, ENVIRONMENT, Ended, UserError
from cake_tui.model.device import Device
from cake_tui.model.jobs import (
    Check,
    EvaluatorJob,
    EvaluatorReply,
    Refused,
    SelfTest,
    SelfTested,
    Subject,
    TimePairs,
    TimePeer,
)
from cake_tui.model.outcome import LaunchFailed, WrongAnswer
from cake_tui.model.problem import Problem


class CudaHost:
    """Runs jobs on one GPU, through one stream of high priority.

    Raises UserError (ENVIRONMENT) where the device is not there or CuPy cannot be used.
    """

    def __init__(self, store: Path, device: Device) -> None:
        show_only_gpu(device.uuid)
        self._fd: int | None = None
        try:
            driver = Driver()
            handle = driver.find(device.uuid)
            driver.current(handle)
        except (OSError, LookupError) as error:
            raise UserError(f"{device.name} ({device.uuid}) is not there: {error}", ENVIRONMENT) from None
        except CudaError as error:
            raise UserError(
                f"{device.name} ({device.uuid}) cannot be used: {error}; see nvidia-smi", ENVIRONMENT
            ) from None
        cupy = _cupy()
        from cake_tui.backends.cuda.lane import Repeats
        from cake_tui.backends.cuda.subject import Gpu
        from cake_tui.backends.cuda.timing import ReadClock
        from cake_tui.backends.cuda.vault import Vault

        try:
            self.gpu = Gpu(driver, handle, device.arch, store)
        except CudaError as error:
            raise UserError(f"{device.name} ({device.uuid}) cannot be used: {error}", ENVIRONMENT) from None
        self.gpu.on_hang = self._hung
        cupy.cuda.ExternalStream(self.gpu.stream).use()
        self.vault = Vault(self.gpu)
        self.repeats = Repeats()
        self.peers = Peers(device)
        self.read_clock = ReadClock(_monitor(device))
        self._referee: Referee | None = None

    def watch_faults(self, fd: int) -> None:
        """Keep the descriptor that a last word goes to."""
        self._fd = fd

    def handle(self, job: EvaluatorJob) -> EvaluatorReply:
        """Do one job; raises UserError where the problem itself cannot be checked.

        After an error that stays the process says so and ends: every later call would fail the same way.
        """
        self.gpu.arm = "candidate"
        try:
            return self._handle(job)
        except Ended as ended:
            if not isinstance(ended.outcome, WrongAnswer | LaunchFailed):
                raise
            holder = getattr(ended, "arm", "candidate") == "holder"
            return Refused(ended.outcome, "holder" if holder else "candidate")
        except Exception as error:
            found = _cuda_error(error)
            if found is None:
                raise
            self._end(last_word=found, arm=self.gpu.arm, device_lost=getattr(error, "device_gone", False))

    def close(self) -> None:
        """End the peers."""
        self.peers.close()

    def _handle(self, job: EvaluatorJob) -> EvaluatorReply:
        from cake_tui.backends.cuda.checking import Checker
        from cake_tui.backends.cuda.timing import time_pairs

        self.vault.use(job.problem)
        match job:
            case SelfTest() if job.problem.reference_is_first:
                return SelfTested(True, (), 0.0, 0.0, job.problem.tolerance_abs)  # there is no answer to spoil
            case SelfTest():
                return _self_test(job.problem)
            case Check():
                referee = self._referee_for(job.problem, job.truth or job.subject, job.run_limit_s)
                return Checker(self.gpu, self.vault, job, referee).check()
            case TimePairs():
                referee = self._referee_for(job.problem, job.holder, job.run_limit_s)
                return time_pairs(self.gpu, self.vault, self.repeats, job, referee, self.read_clock)
            case TimePeer():
                return time_peer(self.gpu, self.vault, self.repeats, self.peers, job, self.read_clock)

    def _referee_for(self, problem: Problem, truth: Subject, run_limit_s: float) -> Any:
        """Return the problem's referee; where it has none, one that runs `truth`."""
        if problem.reference_is_first:
            from cake_tui.backends.cuda.first import FirstReferee

            self.vault.clear()
            return FirstReferee(self.gpu, problem, truth, run_limit_s)
        if self._referee is None or self._referee.problem != problem:
            import cupy

            readable(problem)
            self._referee = Referee(problem, cupy, _erf)
        return self._referee

    def _hung(self, hung: Any) -> None:
        self._end(timed_out=True, arm=self.gpu.arm, last_word=str(hung))

    def _end(self, **last: Any) -> NoReturn:
        """Say a last word and end this process, without waiting for the device."""
        if self._fd is not None:
            line = msgspec.json.encode(last) + b"\n"
            os.write(self._fd, line)
        self.peers.close()
        os._exit(BUG)


def _cupy() -> Any:
    try:
        import cupy
        import cupy.cuda
    except Exception as error:  # noqa: BLE001 - whatever an installation may lack
        raise UserError(f"CuPy cannot be used: {type(error).__name__}: {str(error)[:300]}", ENVIRONMENT) from None
    return cupy


def _erf(values: Any) -> Any:
    """Return the error function of an array on the device, in float64."""
    from cupyx.scipy import special

    return special.erf(values)


def _self_test(problem: Problem) -> SelfTested:
    """Hold numpy's wrong and honest answers against the check: that says something of the check, not of the device."""
    import math

    import numpy as np

    readable(problem)
    return self_test(problem, Referee(problem, np, np.vectorize(math.erf, otypes=[np.float64])))


def _monitor(device: Device) -> Any:
    """Return what reads the device's clocks, or None."""
    if "nvml" not in registry.names("monitors"):
        return None
    return registry.load("monitors", "nvml")(device)


def _cuda_error(error: BaseException) -> str | None:
    """Return the words for an error of the device that ends the process, None for any other."""
    if isinstance(error, CudaError):
        return f"{error.name}: {error.text}"
    if type(error).__name__ in ("CUDARuntimeError", "CUDADriverError", "CUBLASError"):
        return str(error)
    return None
