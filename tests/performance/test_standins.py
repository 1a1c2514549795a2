"""Models whose kernels nobody measured: the referees are models with kernels of their own."""

from dataclasses import replace

import numpy as np
import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.time.steps import Deployed
from service.performance.estimated import estimated_step_tables
from service.performance.kernels import measured_step_tables
from service.performance.known import MEASURED, Knowledge
from service.performance.siblings import carried_over
from service.performance.standins import CACHE_ERROR, STAND_IN_ERROR, WHOLE_CACHE, stand_ins
from service.performance.tables import Floats, StepTables
from tests.conftest import shared_tables
from tests.performance.test_siblings import deployed

MEASURED_MIXTURES = (
    ("qwen3-30b-a3b", 1),
    ("qwen3-235b-a22b", 8),
    ("minimax-m2", 4),
    ("qwen3-coder-480b-a35b-instruct", 8),
)


def knots(tables: StepTables) -> Floats:
    return np.array([*(seconds for row in tables.decode for seconds in row[:5]), *tables.tokens])


def off(tables: StepTables, measured: StepTables) -> Floats:
    return np.abs(np.log(knots(tables) / knots(measured)))


def carried(key: Deployed) -> StepTables:
    stand_in = replace(key, model=stand_ins(key.model)[0].model)
    kernels = measured_step_tables(stand_in, shared_tables())
    return carried_over(kernels, estimated_step_tables(key), estimated_step_tables(stand_in))


def test_experts_of_other_sizes_tell_times_better_than_a_data_sheet(catalog: Snapshot) -> None:
    by_stand_in, by_roofline = [], []
    for model, ranks in MEASURED_MIXTURES:
        key = deployed(catalog, model, "h200", ranks)
        own = measured_step_tables(key, shared_tables())
        by_stand_in.append(off(carried(key), own))
        by_roofline.append(off(estimated_step_tables(key), own))

    assert np.quantile(np.concatenate(by_stand_in), 0.9) < STAND_IN_ERROR
    assert np.median(np.concatenate(by_stand_in)) < 0.5 * np.median(np.concatenate(by_roofline))


@pytest.mark.parametrize("gpu", ["h200", "b200"])
def test_latents_with_other_experts_tell_times_better_than_a_data_sheet(catalog: Snapshot, gpu: str) -> None:
    # Kimi K2, 64 heads and 384 experts, by DeepSeek-V3's 128 and 256: both were measured.
    key = deployed(catalog, "kimi-k2-instruct", gpu, 8)
    own = measured_step_tables(key, shared_tables())
    stand_in = replace(key, model=stand_ins(key.model)[1].model)
    told = carried_over(
        measured_step_tables(stand_in, shared_tables()), estimated_step_tables(key), estimated_step_tables(stand_in)
    )

    assert "256 experts of 2048 columns in 7168" in stand_ins(key.model)[1].told
    assert np.median(off(told, own)) < 0.5 * np.median(off(estimated_step_tables(key), own))
    assert np.median(off(told, own)) < STAND_IN_ERROR


@pytest.mark.parametrize("gpu", ["h100", "b200", "l40s"])
def test_caches_in_fp8_are_told_by_those_in_16_bits_better_than_by_a_data_sheet(catalog: Snapshot, gpu: str) -> None:
    by_other_cache, by_roofline = [], []
    for model in ("llama-3.1-8b", "qwen2.5-7b", "qwen3-30b-a3b"):
        key = replace(deployed(catalog, model, gpu, 1), kv_cache_dtype="fp8")
        own, whole = measured_step_tables(key, shared_tables()), replace(key, kv_cache_dtype=WHOLE_CACHE)
        told = carried_over(
            measured_step_tables(whole, shared_tables()), estimated_step_tables(key), estimated_step_tables(whole)
        )
        by_other_cache.append(off(told, own))
        by_roofline.append(off(estimated_step_tables(key), own))

    assert np.median(np.concatenate(by_other_cache)) < CACHE_ERROR
    assert np.median(np.concatenate(by_other_cache)) < 0.5 * np.median(np.concatenate(by_roofline))


def test_an_engine_whose_fp8_caches_nobody_measured_is_timed_by_its_own_in_16_bits(catalog: Snapshot) -> None:
    key = replace(deployed(catalog, "llama-3.1-8b", "h100"), rules=rules_for("sglang"), kv_cache_dtype="fp8")
    known = Knowledge(shared_tables())
    times, whole = known.nearest(key), known.nearest(replace(key, kv_cache_dtype=WHOLE_CACHE))

    assert "times with a cache in bf16" in times.note
    assert times.is_stand_in
    assert times.row.factors == whole.row.factors
    assert times.row.expected_error_fraction >= whole.row.expected_error_fraction
    assert all(one < other for one, other in zip(times.tables.decode[-1], whole.tables.decode[-1], strict=True))


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("glm-4.6", "times with 256 experts of 1536 columns in 3072"),
        ("mistral-large-3-675b-instruct-2512", "128 heads over latents, and 256 experts of 2048 columns in 7168"),
        ("gemma-3-27b-it", "8 of them with keys, and no window"),
        ("mistral-7b-instruct-v0.1", "times with no window"),
    ],
)
def test_times_say_what_stands_in(catalog: Snapshot, model: str, told: str) -> None:
    times = Knowledge(shared_tables()).nearest(
        deployed(catalog, model, "h200", 1 if "b-it" in model or "7b" in model else 8)
    )

    assert times.basis == MEASURED
    assert times.is_carried
    assert told in times.note
    # The published row's own error, and that of carrying on top of it.
    assert times.row.expected_error_fraction > STAND_IN_ERROR


def test_a_model_without_usual_layers_has_no_stand_in(catalog: Snapshot) -> None:
    assert stand_ins(catalog.model("minimax-m3")) == ()
    assert stand_ins(catalog.model("deepseek-v2-lite")) == ()  # 16 heads
    assert stand_ins(catalog.model("llama-3.1-8b")) == ()
