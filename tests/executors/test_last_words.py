"""What an evaluator that ends itself says at the last moment: whose run it was, and whether the device is gone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cake_tui.backends.cpu import PLUGIN
from cake_tui.errors import ENVIRONMENT, DeviceLost
from cake_tui.executors.local import Local
from cake_tui.model.jobs import Checked, Lost
from tests.executors.doubling import GOOD, build_one, check, doing

pytestmark = pytest.mark.cc


def kernel(**word: object) -> str:
    """A kernel that writes a line to every descriptor that its process may have, and ends it."""
    text = json.dumps(word) + "\n"
    quoted = json.dumps(text)
    return doing(
        f"const char word[] = {quoted}; for (int fd = 3; fd < 1024; fd++) if (write(fd, word, sizeof word - 1) < 0) "
        "continue; _exit(1);"
    )


@pytest.mark.parametrize("arm", ["candidate", "holder"])
def test_the_reason_is_the_last_word_with_whose_run_it_was(tmp_path: Path, arm: str) -> None:
    with Local("cpu", tmp_path, PLUGIN.devices()[0]) as executor:
        subject = build_one(executor, kernel(last_word="CUDA_ERROR_ILLEGAL_ADDRESS: an illegal access", arm=arm))
        reply = executor.evaluate(check(subject), 30.0)
        assert reply == Lost("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal access", arm=arm)  # type: ignore[arg-type]
        assert isinstance(executor.evaluate(check(build_one(executor, GOOD)), 30.0), Checked)


def test_a_run_that_hung_is_told_from_one_that_failed(tmp_path: Path) -> None:
    with Local("cpu", tmp_path, PLUGIN.devices()[0]) as executor:
        subject = build_one(executor, kernel(last_word="hangs", timed_out=True, arm="holder"))
        reply = executor.evaluate(check(subject, 7.0), 30.0)
        assert reply == Lost("a run took longer than 7 s", timed_out=True, limit_s=7.0, arm="holder")


def test_a_lost_device_is_no_candidates_ending(tmp_path: Path) -> None:
    with Local("cpu", tmp_path, PLUGIN.devices()[0]) as executor:
        subject = build_one(executor, kernel(last_word="CUDA_ERROR_NO_DEVICE", device_lost=True))
        with pytest.raises(DeviceLost, match="is lost: CUDA_ERROR_NO_DEVICE") as caught:
            executor.evaluate(check(subject), 30.0)
        assert caught.value.exit_code == ENVIRONMENT
        assert isinstance(executor.evaluate(check(build_one(executor, GOOD)), 30.0), Checked)
