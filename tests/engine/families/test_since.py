"""Which versions of engines lack a class, as their registries tell."""

import pytest
from packaging.version import Version

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import Layout, StatedSettings, plan_replica
from service.engine.errors import RefusedStartError
from service.engine.families.registry import REGISTRY
from service.engine.families.since import LACKED_UNTIL, lacked_until
from service.engine.fleet.settings import resolve
from service.engine.inputs import EngineName


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
def test_every_class_listed_is_one_of_ours_and_versions_stand_in_order(engine: EngineName) -> None:
    listed = LACKED_UNTIL[engine]
    versions = list(dict.fromkeys(listed.values()))

    assert set(listed) <= set(REGISTRY.families)
    assert sorted(versions, key=Version) == versions


@pytest.mark.parametrize(
    ("name", "version"),
    # vLLM's release notes: DeepSeek-V3 0.6.6, Qwen2.5-VL 0.7.2, Gemma 3 0.8.0, Qwen3 0.8.4, gpt-oss 0.10.1, Qwen3-VL 0.11.0, Gemma 4 0.19
    [
        ("DeepseekV3ForCausalLM", "0.6.5"),
        ("Qwen2_5_VLForConditionalGeneration", "0.7.0"),
        ("Gemma3ForConditionalGeneration", "0.7.3"),
        ("Qwen3ForCausalLM", "0.8.3"),
        ("GptOssForCausalLM", "0.10.0"),
        ("Qwen3VLForConditionalGeneration", "0.10.2"),
        ("Gemma4ForConditionalGeneration", "0.18.1"),
    ],
)
def test_a_class_is_lacked_by_the_version_before_its_release(name: str, version: str) -> None:
    assert lacked_until(name)["vllm"] == version


def test_a_model_is_refused_under_a_version_that_lacks_it_and_planned_under_one_that_has_it(catalog: Snapshot) -> None:
    model, gpu = catalog.model("qwen3-vl-8b-instruct"), catalog.gpu("h100")

    with pytest.raises(RefusedStartError, match="has no Qwen3VLForConditionalGeneration yet"):
        plan_replica(model, gpu, Layout(), StatedSettings(), rules_for("vllm", "0.10"))
    assert plan_replica(model, gpu, Layout(), StatedSettings(), rules_for("vllm", "0.11")).weights_fit


# SGLang's release notes: gpt-oss 0.5.1, DeepSeek V3.2 0.5.3; Qwen3.5 and DeepSeek V4 came out in 2026
@pytest.mark.parametrize(
    ("model", "without", "has"),
    [
        ("gpt-oss-120b", "0.4.6", "0.5.1"),
        ("deepseek-v3.2", "0.5.0", "0.5.3"),
        ("qwen3.5-27b", "0.5.3", "0.5.9"),
        ("deepseek-v4-flash", "0.5.5", "0.5.12"),
    ],
)
def test_sglang_lacks_classes_of_models_that_came_later(catalog: Snapshot, model: str, without: str, has: str) -> None:
    facts, gpu = catalog.model(model), catalog.gpu("h200")

    with pytest.raises(RefusedStartError, match=f"SGLang {without} has no"):
        resolve(facts, gpu, StatedSettings(), rules_for("sglang", without))
    resolve(facts, gpu, StatedSettings(), rules_for("sglang", has))
    resolve(facts, gpu, StatedSettings(), rules_for("sglang"))
