"""Patterns over module names: what they match, and that none of them can be made to run away."""

from time import thread_time
from typing import Any

import pytest

from service.engine.errors import UnsupportedModelError
from service.engine.formats.modules import MAX_EXPRESSIONS, MAX_LENGTH, MAX_NAMES, Named
from service.engine.formats.quantization import parse_quantization

GATE = "model.layers.3.mlp.gate"
# pattern, a module that it keeps, and one that it does not
MATCHED: dict[str, tuple[str, str, str]] = {
    "an exact name": ("model.layers.3.mlp.gate", GATE, "model.layers.33.mlp.gate"),
    "a last part": ("gate", GATE, "model.layers.3.mlp.gate_up_proj"),
    "what a module is inside": ("model.layers.3", GATE, "model.layers.30.mlp.gate"),
    "a name of another family": ("model.layers.3.block_sparse_moe.gate", GATE, "model.layers.3.self_attn.gate"),
    "a name that Qwen3-Next fuses": (
        "model.layers.3.linear_attn.in_proj_ba",
        "model.layers.3.linear_attn.in_proj_b",
        "model.layers.3.linear_attn.in_proj_qkv",
    ),
    "a beginning": ("model.layers.3.*", GATE, "model.layers.30.mlp.gate"),
    "a wildcard inside": ("model.layers.*.mlp.gate", GATE, "model.layers.3.mlp.gate_up_proj"),
    "a wildcard in front": ("*.mlp.*", GATE, "model.layers.3.self_attn.q_proj"),
    "a letter": ("*.layers.?.mlp.gate", GATE, "model.layers.33.mlp.gate"),
    "a set": ("*.layers.[0-3].mlp", GATE, "model.layers.4.mlp.gate"),
    "all but a set": ("*.layers.[!4-9].mlp", GATE, "model.layers.4.mlp.gate"),
    "a bracket": ("*[mlp*", "model.layers.0.[mlp", GATE),
    "an expression": (r"re:.*\.mlp\.(gate|up)$", GATE, "model.layers.3.mlp.gate_up_proj"),
    "an expression from the beginning": ("re:layers", "layers.3", GATE),
    "an expression that is not anchored at the end": ("re:model.layers.3", "model.layers.33.mlp", "model.layers.4.mlp"),
}
NESTED = 5_000
UNUSABLE: dict[str, list[str]] = {
    "a repetition without bounds": ["re:a{99999999999999999999}"],
    "a repetition from nowhere": ["re:a{,3}"],
    "a repetition of repetitions": ["re:((a{1000}){1000}){1000}"],
    "nested groups": ["re:" + "(" * NESTED + ")" * NESTED],
    "nested groups of one length": ["re:" + "(" * (MAX_LENGTH // 2) + "a"],
    "no expression at all": ["re:a)(b"],
    "a look ahead": ["re:(?!model).*"],
    "a look behind": ["re:.*(?<=a)b"],
    "a back-reference": [r"re:(.*)\1"],
    "a long one": ["re:" + "a" * (MAX_LENGTH + 1)],
    "many": [f"re:model.layers.{number}" for number in range(MAX_EXPRESSIONS + 1)],
    "many wildcards": [f"*{number}*" for number in range(MAX_EXPRESSIONS + 1)],
    "large ones": [f"re:(.?.?.?.?){{{number}}}" for number in range(60, 90)],
    "a list without end": ["a"] * (MAX_NAMES + 1),
}


def fp8(*patterns: str) -> dict[str, Any]:
    return {"quant_method": "fp8", "activation_scheme": "dynamic", "ignored_layers": list(patterns)}


@pytest.mark.parametrize(("pattern", "kept", "quantized"), MATCHED.values(), ids=MATCHED)
def test_a_pattern_keeps_what_it_names(pattern: str, kept: str, quantized: str) -> None:
    quantization = parse_quantization(fp8(pattern))

    assert quantization.keeps(kept)
    assert not quantization.keeps(quantized)


def test_patterns_hold_side_by_side() -> None:
    quantization = parse_quantization(
        fp8("re:.*q_proj$", "re:.*(?P<part>k)_proj$", "re:.*(?P<part>v)_proj$", "*.mlp.*")
    )

    kept = [name for name in "qkvo" if quantization.keeps(f"model.layers.0.self_attn.{name}_proj")]
    assert kept == ["q", "k", "v"]
    assert quantization.keeps(GATE)


@pytest.mark.parametrize("patterns", UNUSABLE.values(), ids=UNUSABLE)
def test_a_pattern_that_cannot_run_within_bounds_is_refused(patterns: list[str]) -> None:
    start = thread_time()

    with pytest.raises(UnsupportedModelError) as refusal:
        parse_quantization(fp8(*patterns))

    assert thread_time() - start < 2
    assert refusal.value.field == "model_config.quantization_config.ignored_layers"
    assert len(refusal.value.detail) < 300


@pytest.mark.parametrize(
    "pattern", ["re:([a-z0-9_.]+)+!", "re:(.*)*!", "re:(\\w|\\W)*!", "re:(.*a){20}", "*a" * 60 + "!"]
)
def test_what_explodes_by_backtracking_is_matched_in_linear_time(pattern: str) -> None:
    quantization = parse_quantization(fp8(pattern))
    start = thread_time()

    assert not any(quantization.keeps(f"model.layers.{layer}.mlp.gate_up_proj") for layer in range(100))

    assert thread_time() - start < 5  # or for longer than anybody waits


@pytest.mark.parametrize("block", [[0], [-1, 5], [128, 0], [128, -128]])
@pytest.mark.parametrize("scheme", ["fp8", "compressed-tensors"])
def test_a_block_without_rows_or_columns_is_refused(scheme: str, block: list[int]) -> None:
    weights = {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": block}
    stated: dict[str, dict[str, Any]] = {
        "fp8": {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": block},
        "compressed-tensors": {
            "quant_method": "compressed-tensors",
            "config_groups": {"group_0": {"weights": weights}},
        },
    }

    with pytest.raises(UnsupportedModelError, match=r"weight_block_size|block_structure"):
        parse_quantization(stated[scheme])


def test_a_published_block_is_read() -> None:
    assert (
        parse_quantization(
            {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
        ).block
        == 128
    )


@pytest.mark.parametrize(
    ("pattern", "tells"),
    {
        "lm_head": False,
        "*.mlp.gate": False,
        "re:.*self_attn.*": False,
        "re:.*\\.gate$": False,
        "re:model.layers..*gate": True,  # a point that is any letter may be a figure
        "model.layers.3.*": True,
        "*.layers.?.mlp": True,
        "re:.*layers\\.[0-3]\\..*": True,
    }.items(),
)
def test_a_pattern_that_may_tell_layers_apart_says_so(pattern: str, *, tells: bool) -> None:
    named = Named((pattern,))

    assert named.tells_layers_apart is tells
    if not tells:
        assert len({named.names(f"model.layers.{layer}.mlp.gate") for layer in range(120)}) == 1
