"""The simulated backend: options, builds, endings that really happen, times around the surface."""

from __future__ import annotations

import math
import statistics
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from cake_tui import registry
from cake_tui.backends.simulated import PLUGIN, SimulatedBackend, options
from cake_tui.backends.simulated.host import SimulatedHost, schedule_of
from cake_tui.backends.simulated.surfaces import SURFACES
from cake_tui.errors import ENVIRONMENT, UserError
from cake_tui.model.jobs import (
    BuildJob,
    Built,
    Check,
    Checked,
    NotBuilt,
    Refused,
    SelfTest,
    SelfTested,
    Timed,
    TimePairs,
    TimePeer,
)  # fmt: skip
from cake_tui.model.outcome import LaunchFailed, WrongAnswer
from cake_tui.model.problem import Shape
from cake_tui.model.schedule import Schedule
from tests.backends.simulated_jobs import CUBE, NAIVE, PACKED, PROBLEM, TILED, lowered, subject

BACKEND = SimulatedBackend()


def host(argument: str) -> SimulatedHost:
    return SimulatedHost(options.parse(argument))


def pairs(machine: SimulatedHost, holder: Schedule, candidate: Schedule, count: int, seed: int) -> Timed:
    reply = machine.handle(TimePairs(PROBLEM, subject(holder), subject(candidate), count, seed))
    assert isinstance(reply, Timed)
    return reply


# --- options and device -----------------------------------------------------------------------------


def test_the_registry_finds_it_and_every_surface_is_a_device_that_says_simulated() -> None:
    assert registry.load("backends", "simulated") is PLUGIN
    devices = PLUGIN.devices()
    assert [device.uuid for device in devices] == [f"simulated:{name}" for name in SURFACES]
    for device in devices:
        assert device.kind == "simulated"
        assert "simulated" in device.name
        assert "simulated" in PLUGIN.probe(device).version


def test_options_travel_in_the_uuid() -> None:
    device = BACKEND.device("cliffs, noise=0,compile_s=2.5 ,crashed=0.25,seed=7")
    assert device.uuid == "simulated:cliffs,noise=0,crashed=0.25,compile_s=2.5,seed=7"
    assert options.parse_uuid(device.uuid) == options.Options("cliffs", noise=0, compile_s=2.5, crashed=0.25, seed=7)
    assert BACKEND.device("").uuid == "simulated:ridge"
    assert BACKEND.device("noise=0").uuid == "simulated:ridge,noise=0"
    assert BACKEND.device(device.uuid) == device
    assert [BACKEND.device(str(index)) for index in range(len(SURFACES))] == list(BACKEND.devices())


def test_large_seeds_keep_all_their_digits() -> None:
    uuid = BACKEND.device("ridge,seed=123456789").uuid
    assert options.parse_uuid(uuid).seed == 123456789


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("rigde", ['"rigde"', "ridge"]),
        ("ridge,nose=1", ['"nose=1"', '"noise"', "compile_s"]),
        ("ridge,noise", ['"noise"', "NAME=VALUE"]),
        ("ridge,noise=loud", ["noise", '"loud"', "0 to 100"]),
        ("ridge,crashed=1.5", ["crashed", '"1.5"', "0 to 1"]),
        ("ridge,noise=nan", ["noise", '"nan"']),
        ("ridge,compile_s=-1", ["compile_s", '"-1"']),
        ("ridge,surface=2", ['"surface=2"']),
    ],
)
def test_a_bad_option_is_refused_with_what_is_allowed(argument: str, words: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        BACKEND.device(argument)
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_a_broken_machine_is_an_environment_error() -> None:
    with pytest.raises(UserError, match="test compile") as caught:
        PLUGIN.probe(BACKEND.device("ridge,probe=0"))
    assert caught.value.exit_code == ENVIRONMENT


# --- builds -----------------------------------------------------------------------------------------


def test_builds_are_answered_at_once_and_told_apart() -> None:
    device = BACKEND.device("ridge")
    replies = [
        PLUGIN.build_in_process(BuildJob(lowered(s), f), device) for s in (NAIVE, TILED) for f in ("full", "smoke")
    ]
    assert all(isinstance(reply, Built) for reply in replies)
    assert len({reply.binary_sha256 for reply in replies if isinstance(reply, Built)}) == 4
    again = PLUGIN.build_in_process(BuildJob(lowered(NAIVE)), device)
    assert again == replies[0]


def test_failing_compiles_spare_the_naive_structure() -> None:
    device = BACKEND.device("ridge,build_failed=1")
    assert isinstance(PLUGIN.build_in_process(BuildJob(lowered(NAIVE)), device), Built)
    reply = PLUGIN.build_in_process(BuildJob(lowered(TILED)), device)
    assert isinstance(reply, NotBuilt)
    assert "simulated" in reply.reason
    assert reply.log_bytes == len(reply.log) > 0


def run_compiler(argument: str, schedule: Schedule, folder: Path) -> subprocess.CompletedProcess[str]:
    device, job = BACKEND.device(argument), BuildJob(lowered(schedule))
    assert PLUGIN.build_in_process(job, device) is None
    source, output = folder / "full.c", folder / "full.so"
    source.write_text(job.lowered.source)
    command = PLUGIN.compile_command(job, device, source, output)
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def test_a_slow_compiler_is_a_real_process_with_a_real_log(tmp_path: Path) -> None:
    started = time.monotonic()
    done = run_compiler("ridge,compile_s=0.3,log_bytes=200000", TILED, tmp_path)
    assert time.monotonic() - started >= 0.3
    assert done.returncode == 0
    assert len(done.stderr) == 200_000
    assert (tmp_path / "full.so").read_bytes().startswith(b"simulated ")


def test_a_failing_compiler_writes_no_binary(tmp_path: Path) -> None:
    done = run_compiler("ridge,build_failed=1,log_bytes=100", TILED, tmp_path)
    assert done.returncode == 1
    assert "error: simulated" in done.stderr
    assert not (tmp_path / "full.so").exists()


def test_a_hanging_compiler_never_ends(tmp_path: Path) -> None:
    device, job = BACKEND.device("ridge,compile_hangs=1"), BuildJob(lowered(TILED))
    (tmp_path / "full.c").write_text(job.lowered.source)
    command = PLUGIN.compile_command(job, device, tmp_path / "full.c", tmp_path / "full.so")
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(command, cwd=tmp_path, timeout=1.0, check=False)
    assert not (tmp_path / "full.so").exists()
    assert run_compiler("ridge,compile_hangs=1", NAIVE, tmp_path).returncode == 0


# --- endings ----------------------------------------------------------------------------------------


def test_checks_end_as_the_options_ask() -> None:
    def ask(argument: str, schedule: Schedule = TILED) -> object:
        return host(argument).handle(Check(PROBLEM, subject(schedule), "smoke", 3))

    good = ask("ridge")
    assert isinstance(good, Checked)
    assert good.agreement.input_sets == ("simulated",)
    assert good.agreement.bound_share < 0.5
    refused = ask("ridge,wrong_answer=1")
    assert isinstance(refused, Refused)
    assert isinstance(refused.outcome, WrongAnswer)
    assert refused.outcome.max_abs_err is not None
    assert refused.outcome.max_abs_err > PROBLEM.tolerance_abs
    launch = ask("ridge,launch_failed=1")
    assert isinstance(launch, Refused)
    assert isinstance(launch.outcome, LaunchFailed)
    assert isinstance(ask("ridge,wrong_answer=1", NAIVE), Checked)


@pytest.mark.parametrize(("option", "code"), [("crashed", -11), ("timed_out", None)])
def test_crashes_kill_the_process_and_hangs_never_return(option: str, code: int | None) -> None:
    program = (
        "import msgspec\n"
        "from cake_tui.backends.simulated import PLUGIN, SimulatedBackend\n"
        "from cake_tui.model.jobs import Check\n"
        "from pathlib import Path\n"
        f"job = msgspec.json.decode({msgspec.json.encode(Check(PROBLEM, subject(TILED), 'smoke', 3))!r}, type=Check)\n"
        f"device = SimulatedBackend().device('ridge,{option}=1')\n"
        "PLUGIN.host(Path(), device).handle(job)\n"
        "print('came back')\n"
    )
    try:
        limit_s = 60 if code else 3
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        assert code is None
    else:
        assert done.returncode == code, done.stderr.decode()


def test_shares_are_shares() -> None:
    machine = options.parse("ridge,crashed=0.2,wrong_answer=0.3,failures=0")
    endings = [machine.ending(Schedule.of("packed", {"thread_m": m, "pad": p})) for m in range(60) for p in range(60)]
    share = {name: endings.count(name) / len(endings) for name in set(endings)}
    assert share.keys() == {"Crashed", "WrongAnswer", "Measured"}
    assert share["Crashed"] == pytest.approx(0.2, abs=0.02)
    assert share["WrongAnswer"] == pytest.approx(0.3, abs=0.02)


def test_the_self_test_passes_and_says_that_nothing_was_checked() -> None:
    reply = host("ridge").handle(SelfTest(PROBLEM))
    assert isinstance(reply, SelfTested)
    assert reply.passed
    assert "simulated" in reply.cases[0][0]


# --- times ------------------------------------------------------------------------------------------


def test_quiet_times_are_the_surface_itself() -> None:
    series = pairs(host("ridge,noise=0,drift=0"), NAIVE, PACKED, 4, seed=1).series
    expected = (SURFACES["ridge"].time_us(NAIVE), SURFACES["ridge"].time_us(PACKED))
    assert [(pair.holder_us, pair.candidate_us) for pair in series.pairs] == [pytest.approx(expected)] * 4
    assert [pair.holder_first for pair in series.pairs] == [True, False, True, False]


def test_the_same_job_gives_the_same_times_and_another_seed_others() -> None:
    first = pairs(host("mirage"), NAIVE, TILED, 3, seed=5).series.pairs
    assert pairs(host("mirage"), NAIVE, TILED, 3, seed=5).series.pairs == first
    assert pairs(host("mirage"), NAIVE, TILED, 3, seed=6).series.pairs != first
    assert pairs(host("mirage,seed=1"), NAIVE, TILED, 3, seed=5).series.pairs != first


def test_drift_moves_both_arms_and_leaves_the_ratio() -> None:
    """Ornstein-Uhlenbeck with sd 9.5 %: the level of a series varies so much, the ratio within pairs hardly."""
    quick = Schedule.of("tiled", {"thread_m": 8})
    all_series = [pairs(host("mirage,noise=0"), quick, PACKED, 4, seed=seed).series for seed in range(300)]
    truth = math.log(SURFACES["mirage"].time_us(quick) / SURFACES["mirage"].time_us(PACKED))
    levels = [math.log(s.pairs[0].holder_us / SURFACES["mirage"].time_us(quick)) for s in all_series]
    ratios = [math.log(p.holder_us / p.candidate_us) - truth for s in all_series for p in s.pairs]
    assert statistics.stdev(levels) == pytest.approx(0.095, rel=0.15)
    # two samples 10 ms apart at a time constant of 20 s: sd · sqrt(2 · (1 - exp(-0.01/20)))
    assert statistics.stdev(ratios) == pytest.approx(0.095 * math.sqrt(2 * (1 - math.exp(-0.01 / 20))), rel=0.2)


def test_white_noise_has_the_width_that_the_surface_states() -> None:
    series = pairs(host("cliffs,drift=0"), NAIVE, NAIVE, 4000, seed=2).series
    ratios = sorted(math.log(pair.holder_us / pair.candidate_us) for pair in series.pairs)
    middle = ratios[len(ratios) // 20 : -len(ratios) // 20]
    quartile = ratios[3 * len(ratios) // 4] - ratios[len(ratios) // 4]
    assert quartile / 1.349 == pytest.approx(0.015 * math.sqrt(2), rel=0.1)
    assert abs(statistics.fmean(middle)) < 0.003


def test_flat_makes_every_schedule_a_tie() -> None:
    series = pairs(host("ridge,flat_us=1000,noise=0,drift=0"), NAIVE, PACKED, 2, seed=1).series
    assert {(pair.holder_us, pair.candidate_us) for pair in series.pairs} == {(1000.0, 1000.0)}


def test_times_follow_sizes_and_ranking() -> None:
    small = Shape((("M", 256), ("N", 512), ("K", 512)))
    machine = host("ridge,noise=0,drift=0")
    full = SURFACES["ridge"].time_us(PACKED)
    for ranking, expected in (("last", 0.5), ("mean", 0.75), ("geom", math.sqrt(0.5))):
        problem = msgspec.structs.replace(PROBLEM, shapes=(CUBE, small), ranking=ranking)
        reply = machine.handle(TimePairs(problem, subject(PACKED), subject(PACKED), 1, 0))
        assert isinstance(reply, Timed)
        assert reply.series.pairs[0].candidate_us == pytest.approx(full * expected)


def test_a_peer_has_a_steady_time_of_its_own() -> None:
    reply = host("ridge,noise=0,drift=0").handle(TimePeer(PROBLEM, "numpy", subject(PACKED), 2, 1))
    assert isinstance(reply, Timed)
    assert reply.peer_version == "simulated"
    assert len({pair.candidate_us for pair in reply.series.pairs}) == 1


def test_constants_are_read_under_the_names_of_knobs() -> None:
    assert schedule_of(lowered(PACKED)) == PACKED
    upper = msgspec.structs.replace(lowered(PACKED), constants=tuple((k.upper(), v) for k, v in PACKED.knobs))
    assert schedule_of(upper) == PACKED
