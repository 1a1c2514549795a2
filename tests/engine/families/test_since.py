"""Which versions of vLLM lack a class, as their registries tell."""

import pytest
from packaging.version import Version

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import Layout, StatedSettings, plan_replica
from service.engine.errors import RefusedStartError
from service.engine.families.registry import REGISTRY
from service.engine.families.since import LACKED, LACKED_UNTIL, lacked_until


def test_every_class_listed_is_one_of_ours_and_stands_once() -> None:
    names = [name for listed in LACKED.values() for name in listed.split()]

    assert set(names) <= set(REGISTRY.families)
    assert len(names) == len(set(names)) == len(LACKED_UNTIL)
    assert sorted(LACKED, key=Version) == list(LACKED)


@pytest.mark.parametrize(
    ("name", "version"),
    # vLLM's release notes: Qwen3 0.8.4, gpt-oss 0.10.1, Qwen3-VL 0.11.0, Gemma 4 0.19
    [
        ("Qwen3ForCausalLM", ""),
        ("GptOssForCausalLM", "0.9.2"),
        ("Qwen3VLForConditionalGeneration", "0.10.2"),
        ("Gemma4ForConditionalGeneration", "0.18.0"),
    ],
)
def test_a_class_is_lacked_by_the_version_before_its_release(name: str, version: str) -> None:
    assert lacked_until(name) == version


def test_a_model_is_refused_under_a_version_that_lacks_it_and_planned_under_one_that_has_it(catalog: Snapshot) -> None:
    model, gpu = catalog.model("qwen3-vl-8b-instruct"), catalog.gpu("h100")

    with pytest.raises(RefusedStartError, match="has no Qwen3VLForConditionalGeneration yet"):
        plan_replica(model, gpu, Layout(), StatedSettings(), rules_for("vllm", "0.10"))
    assert plan_replica(model, gpu, Layout(), StatedSettings(), rules_for("vllm", "0.11")).weights_fit
