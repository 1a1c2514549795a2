"""Which stored measurements speak for a deployment, and what several of them say together."""

from dataclasses import replace

import pytest

from service.engine.engines.measured_here import Deployment, MeasuredMemory, MeasuredSteps, memory_of, steps_of
from service.engine.inputs import Layout

ONE = Deployment(model="m", gpu="g", layout=Layout(), weight_format="bf16", kv_cache_dtype="bf16")
START = MeasuredMemory(id="a", source="log", of=ONE, error_fraction=0.01, non_torch_bytes=100, weight_bytes=10,
                       unexplained_bytes=-4)  # fmt: skip
RUN = MeasuredSteps(id="b", source="run", of=ONE, error_fraction=0.02, prefill_factor=2.0, decode_factor=0.5)


def test_a_start_up_speaks_for_its_model_gpu_and_layout_alone() -> None:
    assert memory_of((START, RUN), "m", "g", Layout(), "bf16") == START
    for model, gpu, layout in (("n", "g", Layout()), ("m", "h", Layout()), ("m", "g", Layout(tensor_parallel_size=2))):
        assert memory_of((START,), model, gpu, layout, "bf16") is None


def test_what_no_line_explains_holds_in_the_format_that_was_loaded() -> None:
    other = memory_of((START,), "m", "g", Layout(), "fp8")

    assert other is not None
    assert (other.non_torch_bytes, other.weight_bytes, other.unexplained_bytes) == (100, 0, 0)


def test_start_ups_in_the_loaded_format_speak_alone_and_by_their_mean() -> None:
    second = replace(START, id="c", non_torch_bytes=300, error_fraction=0.05)
    stranger = replace(START, of=replace(ONE, weight_format="fp8"), non_torch_bytes=9_000)
    mean = memory_of((START, second, stranger), "m", "g", Layout(), "bf16")

    assert mean is not None
    assert (mean.id, mean.non_torch_bytes, mean.error_fraction) == ("a, c", 200, 0.05)


def test_start_ups_that_contradict_each_other_are_as_wrong_as_they_are_apart() -> None:
    start = replace(START, cache_bytes=40_000, taken_bytes=0)
    mean = memory_of(
        (start, replace(start, id="c", cache_bytes=30_000, taken_bytes=10_000)), "m", "g", Layout(), "bf16"
    )

    assert mean is not None
    assert mean.error_fraction == pytest.approx(5_000 / 30_000, abs=1e-6)  # the smaller cache, from the middle


def test_benchmarks_speak_for_their_very_deployment_and_by_their_geometric_mean() -> None:
    second = replace(RUN, id="c", prefill_factor=0.5, decode_factor=0.5)
    mean = steps_of((START, RUN, second), ONE)

    assert steps_of((RUN,), replace(ONE, kv_cache_dtype="fp8")) is None
    assert mean is not None
    assert mean.prefill_factor == pytest.approx(1.0)
    assert mean.decode_factor == pytest.approx(0.5)
    assert mean.error_fraction == pytest.approx(0.693, abs=1e-3)  # ln 2: how far either is from the mean
