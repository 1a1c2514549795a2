"""What answers about one deployment share."""

from dataclasses import fields, replace

from service.catalog.engine_rules import rules_for
from service.engine.answers.capacity import capacity
from service.engine.answers.described import NO_TIME_WARNING, Described
from service.engine.answers.results import Capacity, Sizing
from service.engine.answers.size import size
from service.engine.fleet.questions import StatedSettings
from service.engine.inputs import EngineName, Limits, StatedLayout
from tests.engine.conftest import Asked, arrivals, capacity_of, users


def test_both_answers_have_every_shared_field() -> None:
    shared = set(Described.__annotations__)

    assert shared <= {field.name for field in fields(Sizing)}
    assert shared <= {field.name for field in fields(Capacity)}


def test_both_answers_describe_the_same_gpus_alike(asked: Asked) -> None:
    settings = StatedSettings(max_num_seqs=1_024, max_num_batched_tokens=8_192)
    question = asked("qwen3-32b", load=arrivals(6.0), limits=Limits(ttft_s=1.0), settings=settings)
    sized = size(question)
    same = StatedLayout(tensor_parallel_size=sized.layout.tensor_parallel_size, pipeline_parallel_size=1)
    carried = capacity(replace(capacity_of(question, sized.gpus), layout=same))

    for name in (
        "gpus",
        "replicas",
        "layout",
        "memory_per_gpu",
        "kv_cache",
        "weights",
        "latency",
        "at_load",
        "engine_args",
    ):
        assert getattr(sized, name) == getattr(carried, name), name


def test_a_gpu_that_nobody_times_is_sized_from_memory_and_says_so(asked: Asked) -> None:
    question = asked(load=users(64))
    unknown = replace(question, gpu=replace(question.gpu, peak_flop_per_s={}))
    sized = size(unknown)

    assert sized.feasible
    assert sized.latency is None
    assert NO_TIME_WARNING in sized.warnings
    assert (sized.per_replica.requests_per_s, sized.saturation.request_rate_per_s) == (None, None)


def test_a_recipe_that_is_assumed_is_warned_of(asked: Asked) -> None:
    question = asked(load=users(4))
    assumed = tuple(replace(each, is_assumed=True, source="as is usual") for each in question.model.checkpoints)
    warned = size(replace(question, model=replace(question.model, checkpoints=assumed))).warnings

    assert any("in 16 bits is not known (as is usual)" in sentence for sentence in warned)
    assert not any("in 16 bits is not known" in sentence for sentence in size(question).warnings)


def test_an_estimate_says_how_far_it_may_be_off(asked: Asked) -> None:
    sized = size(asked(gpu="l4"))

    assert sized.latency is not None
    percent = round(100 * sized.latency.expected_error_fraction)
    assert f"latency is a roofline estimate, expected within {percent} %: {sized.latency.basis_note}" in sized.warnings


def test_a_step_smaller_than_an_image_that_is_read_whole_is_told(asked: Asked) -> None:
    # vLLM 0.33 `compute_mm_encoder_budget` raises a ValueError there, unless images are off.
    def warnings(model: str, tokens: int, *, is_text_only: bool = False) -> str:
        stated = StatedSettings(max_num_batched_tokens=tokens, language_model_only=is_text_only)
        return " ".join(size(asked(model, load=users(1), settings=stated)).warnings)

    assert "2048 is less than the 2496 tokens of an image" in warnings("gemma-4-26b-a4b-it", 2_048)
    assert "image" not in warnings("gemma-4-26b-a4b-it", 2_496)
    assert "image" not in warnings("gemma-4-26b-a4b-it", 2_048, is_text_only=True)
    assert "image" not in warnings("qwen3-vl-8b-instruct", 2_048)  # reads images in pieces


def test_sglang_s_text_alone_is_told(asked: Asked) -> None:
    """SGLang 0.5.23 `configs/model_config.py`: "Multimodal is disabled for ... set --enable-multimodal"."""

    def told(model: str, engine: EngineName) -> bool:
        return "--enable-multimodal" in " ".join(size(asked(model, load=users(1), rules=rules_for(engine))).warnings)

    assert told("gemma-3-12b-it", "sglang")
    assert not told("gemma-3-12b-it", "vllm")
    assert not told("gemma-4-26b-a4b-it", "sglang")


def test_published_builds_without_kernels_for_volta_are_told(asked: Asked) -> None:
    """Wheels of vLLM are built with CUDA 13 since 0.20 (pull request 39878)."""

    def told(version: str) -> bool:
        question = replace(asked("mistral-7b-v0.1", gpu="v100", load=users(1)), rules=rules_for("vllm", version))
        return any("CUDA 13" in warning for warning in size(question).warnings)

    assert told("0.20")
    assert not told("0.19.1")


def test_a_version_that_nobody_has_read_is_told(asked: Asked) -> None:
    def told(engine_version: str) -> list[str]:
        question = replace(asked("qwen3-32b", load=users(8)), rules=rules_for("vllm", engine_version))
        return [warning for warning in size(question).warnings if "its rules hold here" in warning]

    assert told("0.33.2") == told("0.33") == told("0.11") == []
    assert told("33") == ["vLLM 33 is newer than 0.33, the newest that is known: its rules hold here"]


def test_a_share_of_memory_beside_a_pool_that_is_given_is_told_to_be_left_out(asked: Asked) -> None:
    question = asked(load=users(4))
    pool = replace(question.settings, kv_cache_memory_bytes=20_000_000_000)
    both = size(replace(question, settings=replace(pool, gpu_memory_utilization=0.8)))

    assert "--gpu-memory-utilization" not in both.engine_args
    assert any("takes the place of gpu_memory_utilization" in sentence for sentence in both.warnings)
    assert not any("gpu_memory_utilization" in each for each in size(replace(question, settings=pool)).warnings)


def test_a_share_of_memory_that_the_command_has_is_not_told_to_be_left_out(asked: Asked) -> None:
    question = asked(load=users(4), rules=rules_for("sglang", None))
    both = replace(question.settings, kv_cache_memory_bytes=20_000_000_000, gpu_memory_utilization=0.8)
    told = size(replace(question, settings=both))

    assert "--mem-fraction-static" in told.engine_args
    assert not any("takes the place of" in sentence for sentence in told.warnings)
