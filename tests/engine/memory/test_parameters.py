"""Parameter counts against the totals that publishers print."""

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.memory.parameters import num_active_parameters, num_parameters

# model, parameters, where it is printed
EXACT = {
    "Llama 3.1 8B": (
        "llama-3.1-8b-instruct",
        8_030_261_248,
        "huggingface.co/meta-llama/Llama-3.1-8B-Instruct, safetensors",
    ),
    "Llama 3.1 70B": ("llama-3.1-70b-instruct", 70_553_706_496, "huggingface.co/meta-llama/Llama-3.1-70B-Instruct"),
    "Qwen2.5 7B": ("qwen2.5-7b-instruct", 7_615_616_512, "huggingface.co/Qwen/Qwen2.5-7B-Instruct, safetensors"),
}
# model, parameters and active parameters in billions as the model card rounds them
ROUNDED = {
    "DeepSeek-V3": ("deepseek-v3", 671, 37),
    "gpt-oss-120b": ("gpt-oss-120b", 116.8, 5.1),
    "Qwen3-235B-A22B": ("qwen3-235b-a22b", 235, 22),
    "Qwen3-30B-A3B": ("qwen3-30b-a3b", 30.5, 3.3),
    "Jamba 1.5 Mini": ("jamba-1.5-mini", 51.6, 12),
    "Granite 4.0 H Small": ("granite-4.0-h-small", 32, 9),
    "Granite 4.0 H Tiny": ("granite-4.0-h-tiny", 6.94, 1.47),
    "Kimi K2": ("kimi-k2-instruct", 1026, 32),
    "Nemotron 3 Super": ("nemotron-3-super-120b-a12b", 120.6, 12.7),
}


@pytest.mark.parametrize(("model", "expected", "printed"), EXACT.values(), ids=EXACT)
def test_parameters_equal_the_published_total(catalog: Snapshot, model: str, expected: int, printed: str) -> None:
    assert num_parameters(catalog.model(model).architecture) == expected, printed


@pytest.mark.parametrize(("model", "total", "active"), ROUNDED.values(), ids=ROUNDED)
def test_parameters_round_to_the_model_card(catalog: Snapshot, model: str, total: float, active: float) -> None:
    architecture = catalog.model(model).architecture

    assert num_parameters(architecture) / 1e9 == pytest.approx(total, rel=0.01)
    # Cards count active parameters with and without embeddings.
    assert num_active_parameters(architecture) / 1e9 == pytest.approx(active, rel=0.12)


# What a published total counts beside what an engine loads to serve.
ONLY_IN_TOTAL = {
    "step-3.7-flash": 2_428_171_008,  # three draft layers
    "ling-3.0-flash": 3_072_194_048,  # one
    "glm-5.3-flash": 7_432_592_416,  # one
    "qwen3.8-flash-next": 2_607_150_848 + 35,  # one; primes, offsets and multipliers of n-grams
    "hunyuanocr": 120_818 * 1_024,  # the tied head, stored twice
    "intern-s2-397b": 6_595_568_128,  # one draft layer
    "intern-s2-preview": 844_640_768 + 133_849_040,  # one; the encoder of time series, which is not loaded
    # Positions of packed images (32,768 x 1,152), which vLLM loads no more since PR 38232, and SigLIP's pooling head: its
    # probe, attention, norm and network of 4,304.
    "paddleocr-vl": 37_748_736 + 15_238_352,
}


def test_every_catalog_model_agrees_with_its_published_total(catalog: Snapshot) -> None:
    wrong = {}
    for entry in catalog.entries.models:
        if entry.num_parameters is None or catalog.refusal(entry.id) is not None:
            continue
        ours = num_parameters(catalog.model(entry.id).architecture) + ONLY_IN_TOTAL.get(entry.id, 0)
        if abs(ours / entry.num_parameters - 1) > 0.01:
            wrong[entry.id] = (ours, entry.num_parameters)

    assert wrong == {}


@pytest.mark.parametrize("model", ["apertus-8b-instruct-2509", "command-r-plus", "phi-2", "llama-3.1-8b-instruct"])
def test_these_have_every_parameter_that_the_hub_counts(catalog: Snapshot, model: str) -> None:
    # Learnt slopes of an activation, norms on heads, a bias on the output head.
    entry = next(each for each in catalog.entries.models if each.id == model)

    assert num_parameters(catalog.model(model).architecture) == entry.num_parameters


def test_a_projector_of_several_layers_reads_them_side_by_side(catalog: Snapshot) -> None:
    # Of the hub's total SigLIP's pooling head is not loaded (a probe, attention, two matrices, a norm), nor its last norm.
    width, inner = 1_152, 4_304
    pooling = width + 4 * (width * width + width) + (2 * width * inner + width + inner) + 4 * width
    entry = next(each for each in catalog.entries.models if each.id == "granite-vision-3.2-2b")

    assert num_parameters(catalog.model(entry.id).architecture) + pooling == entry.num_parameters
