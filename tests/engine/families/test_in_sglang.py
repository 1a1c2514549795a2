"""What SGLang's classes hold, beside the parameters that they have when they are built (`plans_of_sglang.csv`)."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import Layout, rank_weights
from service.engine.engines.device import device_of
from service.engine.families.in_sglang import (
    keeps_features,
    pads_experts_since,
    pools_all_layers,
    sglang_copies,
    sglang_ends,
    sglang_tower,
)
from service.engine.formats.quantization import UNQUANTIZED
from service.engine.inputs import EngineName
from service.engine.layers.architecture import ONCE


def parameters(catalog: Snapshot, engine: EngineName, name: str, layout: Layout) -> int:
    device = device_of(catalog.gpu("h100"), rules_for(engine))
    model = catalog.model(name).architecture
    return rank_weights(model, layout=layout, quantization=UNQUANTIZED, device=device).param_bytes


# Of each: the class's own parameters in SGLang 0.5.23, built without weights.
@pytest.mark.parametrize(
    ("name", "layout", "built_bytes"),
    [
        ("fdtn-ai/Foundation-Sec-8B", Layout(pipeline_parallel_size=2), 9_083_027_456),
        ("google/gemma-4-12B-it", Layout(tensor_parallel_size=4), 7_624_589_312),
        ("LiquidAI/LFM2-2.6B", Layout(), 5_406_980_096),
        ("rednote-hilab/dots.ocr", Layout(), 6_545_105_920),
        ("meta-llama/Llama-Guard-4-12B", Layout(tensor_parallel_size=2), 11_129_661_440),
        ("inclusionAI/Ling-2.5-1T", Layout(tensor_parallel_size=8), 254_282_615_808),
        ("HuggingFaceM4/Idefics3-8B-Llama3", Layout(tensor_parallel_size=2), 8_894_652_896),
        ("google/gemma-4-26B-A4B-it", Layout(tensor_parallel_size=8), 7_837_447_264),
    ],
)
def test_a_class_holds_what_sglang_builds(catalog: Snapshot, name: str, layout: Layout, built_bytes: int) -> None:
    assert parameters(catalog, "sglang", name, layout) == pytest.approx(built_bytes, rel=1e-3)
    assert parameters(catalog, "vllm", name, layout) != pytest.approx(built_bytes, rel=1e-3)


def test_other_classes_hold_what_vllm_builds(catalog: Snapshot) -> None:
    for layout in (Layout(tensor_parallel_size=4), Layout(pipeline_parallel_size=4)):
        of_each = {parameters(catalog, engine, "qwen3-32b", layout) for engine in ("sglang", "vllm")}
        assert len(of_each) == 1


def test_a_name_that_nothing_is_known_of_is_split_once() -> None:
    assert sglang_ends("Qwen3ForCausalLM") == ONCE
    assert sglang_tower("Qwen3ForCausalLM") == "split"
    assert sglang_copies("Qwen3ForCausalLM") == "any"
    assert not keeps_features("Qwen3ForCausalLM")
    assert not pads_experts_since("Qwen3ForCausalLM")
    assert not pools_all_layers("Qwen3ForCausalLM")
