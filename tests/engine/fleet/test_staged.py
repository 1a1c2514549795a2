"""Stages that vLLM's own classes take, as they were built stage by stage on a simulated H100."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.device import REFERENCE, device_of
from service.engine.errors import UnsupportedLayoutError
from service.engine.fleet.staged import check_stages
from service.engine.inputs import Layout

# vLLM 0.33: "Specified KV sharing target layer for language_model.model.layers.18.self_attn.attn is not valid: target
# layer language_model.model.layers.13.self_attn.attn is not a valid Attention layer in the model."
PARTED = [("gemma-4-e2b", 2), ("gemma-4-e2b", 3), ("gemma-4-e2b", 4), ("gemma-4-e4b", 3), ("gemma-4-e4b", 4)]
WHOLE = [("gemma-4-e4b", 2), ("gemma-4-31b", 4), ("llama-3.1-8b", 4)]


@pytest.mark.parametrize(("model", "stages"), PARTED)
def test_a_layer_is_not_parted_from_the_cache_it_reads(catalog: Snapshot, model: str, stages: int) -> None:
    with pytest.raises(UnsupportedLayoutError, match=r"layer \d+ reads that of layer 1?2?\d, and \d stages part them"):
        check_stages(catalog.model(model).architecture, Layout(pipeline_parallel_size=stages), REFERENCE)


@pytest.mark.parametrize(("model", "stages"), WHOLE)
def test_stages_that_hold_both_start(catalog: Snapshot, model: str, stages: int) -> None:
    check_stages(catalog.model(model).architecture, Layout(pipeline_parallel_size=stages), REFERENCE)


def test_a_stage_has_a_layer(catalog: Snapshot) -> None:
    with pytest.raises(UnsupportedLayoutError, match="exceeds the 32 layers"):
        check_stages(catalog.model("llama-3.1-8b").architecture, Layout(pipeline_parallel_size=33), REFERENCE)


def test_other_engines_have_words_of_their_own(catalog: Snapshot) -> None:
    sglang = device_of(catalog.gpu("h100"), rules_for("sglang"))

    with pytest.raises(UnsupportedLayoutError, match="no pipeline stages"):
        check_stages(catalog.model("gemma-3-27b").architecture, Layout(pipeline_parallel_size=2), sglang)
    check_stages(catalog.model("gemma-3-27b").architecture, Layout(pipeline_parallel_size=2), REFERENCE)
