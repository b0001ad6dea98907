"""The evaluator process: hosts one backend found by name, takes jobs as JSON lines, answers on a descriptor of its own.

A kernel may crash, hang, leak or print here; only this process pays. It dies with its parent. Lines out:
``{"ready": true}`` once, then ``{"nonce", "reply"}`` a job; ``{"nonce", "user_error", "exit_code"}`` or
``{"nonce", "error"}`` (a traceback: a bug) in place of a reply; ``{"last_word"}`` from a fault handler.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import sys
import threading
import traceback
from pathlib import Path
from typing import BinaryIO, Protocol, runtime_checkable

import msgspec

from cake_tui import registry
from cake_tui.backends import Backend, Host
from cake_tui.backends._parent import die_with
from cake_tui.errors import BUG, UserError
from cake_tui.model.device import Device
from cake_tui.model.jobs import EvaluatorJob, EvaluatorReply

STACK_BYTES = 64 << 20  # kernels keep panels on the stack of the thread that calls them
FILE_BYTES = 64 << 20  # of any one file that a kernel, or what it prints, may write


class Order(msgspec.Struct, frozen=True):
    """One line in: a job and the word that its reply must carry."""

    nonce: str
    job: EvaluatorJob


@runtime_checkable
class WatchesFaults(Protocol):
    """A host that can say, at the last moment, what killed it."""

    def watch_faults(self, fd: int) -> None:
        """Write a `last_word` line to `fd` on a fault."""


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line out."""

    nonce: str = ""
    ready: bool = False
    reply: EvaluatorReply | None = None
    user_error: str | None = None
    exit_code: int = 0
    error: str | None = None
    last_word: str | None = None


def main() -> None:
    """Host the backend until the jobs' descriptor ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", required=True)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--device", required=True, help="JSON")
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--replies", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--memory", type=int, default=0, help="most bytes of data, 0: no limit")
    options = parser.parse_args()
    die_with(options.parent)
    _allow_at_most(resource.RLIMIT_CORE, 0)
    _allow_at_most(resource.RLIMIT_FSIZE, FILE_BYTES)
    if options.memory:
        _allow_at_most(resource.RLIMIT_DATA, options.memory)
    with contextlib.suppress(OSError):  # only some users may
        os.setpriority(os.PRIO_PROCESS, 0, -5)
    threading.stack_size(STACK_BYTES)
    worker = threading.Thread(target=_serve_or_die, args=(options,), name="evaluator", daemon=True)
    worker.start()
    worker.join()


def _allow_at_most(limit: int, most: int) -> None:
    """Lower a limit; one that whoever started us set lower stays as it is."""
    _, hard = resource.getrlimit(limit)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(limit, (most, most))


def _serve_or_die(options: argparse.Namespace) -> None:
    """Run the loop; whatever escapes it ends the process at once, threads of kernels included."""
    status = BUG
    try:
        with os.fdopen(options.jobs, "rb", buffering=1 << 16) as jobs:
            status = _serve(options, jobs)
    except BaseException:  # noqa: BLE001 - the process's boundary
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _serve(options: argparse.Namespace, jobs: BinaryIO) -> int:
    """Answer jobs until there are no more; returns the exit status."""
    try:
        backend: Backend = registry.load("backends", options.backend)
        device = msgspec.json.decode(options.device, type=Device)
        host = backend.host(options.store, device)
    except UserError as error:
        _send(options.replies, Answer(user_error=str(error), exit_code=error.exit_code))
        return error.exit_code
    if isinstance(host, WatchesFaults):
        host.watch_faults(options.replies)
    _send(options.replies, Answer(ready=True))
    decoder = msgspec.json.Decoder(Order)
    for line in jobs:
        order = decoder.decode(line)
        _send(options.replies, _answer(host, order))
    host.close()
    return 0


def _answer(host: Host, order: Order) -> Answer:
    """Do one job; a bug's traceback travels to the engine, and this process goes on."""
    try:
        return Answer(nonce=order.nonce, reply=host.handle(order.job))
    except UserError as error:
        return Answer(nonce=order.nonce, user_error=str(error), exit_code=error.exit_code)
    except Exception:  # noqa: BLE001 - a process boundary
        return Answer(nonce=order.nonce, error=traceback.format_exc())


def _send(fd: int, answer: Answer) -> None:
    """Write one line whole."""
    line = msgspec.json.encode(answer) + b"\n"
    while line:
        line = line[os.write(fd, line) :]


if __name__ == "__main__":
    main()
