"""Step times: never faster than physics, kept, and told where they come from."""

from dataclasses import replace
from itertools import product

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.fleet.checkpoints import own_checkpoint
from service.engine.inputs import Layout
from service.engine.time.confidence import SlowerSteps
from service.engine.time.records import ATTENDED, CONTEXTS, REQUESTS, TOKENS
from service.engine.time.steps import Deployed
from service.performance.estimated import workload
from service.performance.roofline import FLOOR, roofline_tables
from service.performance.timers import KernelTimers
from tests.conftest import shared_timers

RULES = rules_for("vllm")


@pytest.fixture(scope="module")
def timers() -> KernelTimers:
    return shared_timers()


def test_no_step_is_faster_than_its_bytes_over_bandwidth_or_flop_over_peak(
    catalog: Snapshot, timers: KernelTimers
) -> None:
    sizable = [entry.id for entry in catalog.entries.models if catalog.refusal(entry.id) is None]
    layouts = {0: Layout(), 4: Layout(tensor_parallel_size=4)}
    pairs = 0
    # Each model meets every sixteenth GPU in each layout, and each GPU every sixteenth model.
    for (number, name), (place, gpu) in product(enumerate(sizable), enumerate(catalog.gpus.values())):
        layout = layouts.get((number + place) % 16)
        if layout is None:
            continue
        model = catalog.model(name)
        key = Deployed(
            model=model,
            checkpoint=own_checkpoint(model),
            gpu=gpu,
            layout=layout,
            kv_cache_dtype="bf16",
            rules=RULES,
        )
        timing = timers.quick(key)
        assert timing is not None
        floor = roofline_tables(workload(key), gpu, layout, FLOOR)
        for row, requests in enumerate(REQUESTS):
            for column, context in enumerate(CONTEXTS):
                assert timing.steps.decode_s(requests, context) >= floor.decode[row][column] * (1 - 1e-9)
        for index, tokens in enumerate(TOKENS):
            assert timing.steps.mixed_s(tokens, ATTENDED[0], 0, 0) >= floor.tokens[index] * (1 - 1e-9)
        pairs += 1
    assert pairs > 7_500 // 2


@pytest.mark.parametrize("gpu", ["h100-sxm-80gb", "h200-sxm-141gb", "b200-sxm-180gb", "a100-sxm-80gb", "l40s"])
@pytest.mark.parametrize("model", ["llama-3.1-8b-instruct", "gpt-oss-20b", "qwen3-30b-a3b"])
def test_measured_steps_keep_the_floor_as_well(catalog: Snapshot, timers: KernelTimers, gpu: str, model: str) -> None:
    facts, part = catalog.model(model), catalog.gpu(gpu)
    checkpoint = own_checkpoint(facts)
    key = Deployed(model=facts, checkpoint=checkpoint, gpu=part, layout=Layout(), kv_cache_dtype="bf16", rules=RULES)

    timing = timers.timer(key)

    assert timing is not None
    assert timing.basis.is_measured or timing.basis.note
    floor = roofline_tables(workload(key), part, Layout(), FLOOR)
    for row, requests in enumerate(REQUESTS):
        for column, context in enumerate(CONTEXTS):
            assert timing.steps.decode_s(requests, context) >= floor.decode[row][column] * (1 - 1e-9)


def test_why_kernels_do_not_speak_names_no_place_on_this_machine(catalog: Snapshot, timers: KernelTimers) -> None:
    facts, part = catalog.model("llama-3.3-70b"), catalog.gpu("h100-sxm-80gb")
    checkpoint = next(each for each in facts.checkpoints if each.weight_format == "int4")

    timing = timers.timer(
        Deployed(model=facts, checkpoint=checkpoint, gpu=part, layout=Layout(), kv_cache_dtype="bf16", rules=RULES)
    )

    assert timing is not None
    assert timing.basis.note == (
        "no matrix kernels were measured for this weight format on this GPU; "
        "times of bf16 on this layout, as the bytes and multiplications of int4 are to its own"
    )
    assert "/" not in timing.basis.note


def test_times_are_built_once_and_say_who_measured_them(catalog: Snapshot, timers: KernelTimers) -> None:
    facts = catalog.model("llama-3.1-8b")
    key = Deployed(
        model=facts, checkpoint=own_checkpoint(facts), gpu=catalog.gpu("h100"), layout=Layout(), kv_cache_dtype="bf16",
        rules=RULES,
    )  # fmt: skip
    timing = timers.timer(key)

    assert timing is not None
    assert timers.timer(key) is timing
    assert (timing.basis.name, timing.basis.is_measured, timing.basis.note) == ("measured-kernels", True, "")
    assert "aiconfigurator-core" in timing.basis.source
    quick = timers.quick(key)
    assert quick is not None
    assert (quick.basis.name, quick.basis.source) == ("roofline", "a quick estimate")


def test_times_built_anew_are_equal_in_value(catalog: Snapshot, timers: KernelTimers) -> None:
    facts = catalog.model("llama-3.1-8b")
    key = Deployed(
        model=facts, checkpoint=own_checkpoint(facts), gpu=catalog.gpu("l4"), layout=Layout(), kv_cache_dtype="bf16",
        rules=RULES,
    )  # fmt: skip

    assert KernelTimers().timer(key) == timers.timer(key)
    assert KernelTimers().timer(key) is not timers.timer(key)


def test_a_gpu_without_any_peak_is_not_timed(catalog: Snapshot, timers: KernelTimers) -> None:
    facts = catalog.model("llama-3.1-8b")
    unknown = replace(catalog.gpu("h100"), peak_flop_per_s={})
    key = Deployed(
        model=facts, checkpoint=own_checkpoint(facts), gpu=unknown, layout=Layout(), kv_cache_dtype="bf16", rules=RULES
    )

    assert timers.timer(key) is None
    assert timers.quick(key) is None


@pytest.mark.parametrize("copies", [1, 4])
@pytest.mark.parametrize("gpu", ["h100-sxm-80gb", "mi300x", "l4"])
@pytest.mark.parametrize("model", ["llama-3.1-8b-instruct", "gpt-oss-20b"])
def test_what_is_kept_of_one_request_tells_the_same_to_the_last_bit(
    catalog: Snapshot, timers: KernelTimers, model: str, gpu: str, copies: int
) -> None:
    facts = catalog.model(model)
    key = Deployed(
        model=facts,
        checkpoint=own_checkpoint(facts),
        gpu=catalog.gpu(gpu),
        layout=Layout(tensor_parallel_size=copies),
        kv_cache_dtype="bf16",
        rules=RULES,
    )
    timing = timers.quick(key)
    assert timing is not None
    steps, slower = timing.steps, SlowerSteps(steps=timing.steps, factor=1.1)
    for alone, whole in ((steps.alone(), steps), (slower.alone(), slower)):
        for tokens in (1.0, 15.0, 16.0, 700.5, 131_072.0, 1e6):
            assert alone.decode_s(1.0, tokens) == whole.decode_s(1.0, tokens)
            assert alone.mixed_s(tokens, tokens / 2, 0.0, 0.0) == whole.mixed_s(tokens, tokens / 2, 0.0, 0.0)
