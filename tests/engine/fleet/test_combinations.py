"""What a recommendation chooses from."""

from dataclasses import replace

from service.catalog.snapshot import Snapshot
from service.engine.answers.assumptions import recommend_assumptions
from service.engine.fleet.combinations import combinations, formats_left_out, size_question
from tests.engine.conftest import Asked, recommendation_of


def test_every_gpu_is_combined_with_every_format_and_dtype_in_question(asked: Asked, catalog: Snapshot) -> None:
    question = recommendation_of(
        asked(), catalog, "h100", "l40s", weight_formats=("bf16", "fp8"), kv_cache_dtypes=("auto", "fp8")
    )
    found = list(combinations(question))

    assert len(found) == 2 * 2 * 2
    assert {(each.gpu.id, each.settings.weight_format) for each in found} == {
        ("h100-sxm-80gb", "bf16"), ("h100-sxm-80gb", "fp8"), ("l40s", "bf16"), ("l40s", "fp8"),
    }  # fmt: skip
    assert size_question(question, found[0]).gpu is found[0].gpu


def test_without_formats_those_of_the_models_checkpoints_are_in_question(asked: Asked, catalog: Snapshot) -> None:
    question = recommendation_of(asked(), catalog, "h100")
    formats = {each.weight_format for each in catalog.model("llama-3.1-8b").checkpoints}

    assert {each.settings.weight_format for each in combinations(question)} == formats


def test_a_named_gpu_without_bfloat16_loads_what_the_engine_falls_back_to(asked: Asked, catalog: Snapshot) -> None:
    of_16_bits = {"bf16", "fp16"}
    for gpu, own in (("t4", "fp16"), ("v100", "fp16"), ("h100", "bf16")):
        question = recommendation_of(asked(), catalog, gpu)

        assert of_16_bits & {each.settings.weight_format for each in combinations(question)} == {own}


def test_formats_that_a_list_leaves_out_on_some_gpus_are_named(asked: Asked, catalog: Snapshot) -> None:
    # An A100 computes in int8 and 16 bits; of Llama's four bits none are Meta's own.
    question = recommendation_of(asked("llama-3.3-70b"), catalog, "h100", "a100")
    listed = replace(question, is_shortlist=True)

    assert {"fp8", "int4", "nvfp4"} <= set(formats_left_out(listed))
    assert "bf16" not in formats_left_out(listed)
    assert formats_left_out(question) == formats_left_out(replace(listed, weight_formats=("fp8",))) == ()
    told = [each for each in recommend_assumptions(listed, listed.limits) if each.name == "weight_formats_left_out"]
    assert [bool("int4" in str(each.value) and "weight_formats=" in str(each.source)) for each in told] == [True]
