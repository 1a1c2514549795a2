"""AutoRound's checkpoints: which modules they store how, and the bytes that the engine makes room for."""

from typing import Any

import pytest

from service.engine import Layout, parse_architecture, parse_quantization, rank_weights
from service.engine.errors import MissingConfigFieldError, UnsupportedModelError
from tests.engine.small_configs import SMALL_DENSE, SMALL_EXPERTS

STATED = {"quant_method": "auto-round", "bits": 4, "group_size": 128, "sym": True, "data_type": "int"}
AWQ = {"packing_format": "auto_round:auto_awq"}
LAYERS = [f"model.layers.{number}.self_attn" for number in (0, 1)]
WHOLE = {f"{layer}.{name}_proj": {"bits": 16} for layer in LAYERS for name in "qkvo"}
WIDER = {f"{layer}.{name}_proj": {"bits": 8} for layer in LAYERS for name in "qkvo"}


# vLLM 0.33's own planner, which makes room for zero points of symmetric weights too: they go once weights are repacked.
@pytest.mark.parametrize(
    ("further", "dense", "experts"),
    [
        ({}, 325_357_568, 360_487_168),
        (AWQ | {"sym": False}, 325_357_568, 360_257_792),
        ({"bits": 8}, 386_650_112, 455_629_312),
        ({"block_name_to_quantize": "model.layers"}, 325_357_568, 360_487_168),
        ({"block_name_to_quantize": "model.layers.0"}, 415_395_840, 500_135_552),
        ({"extra_config": WHOLE}, 356_405_248, 416_372_992),
        ({"extra_config": {".*self_attn.*": {"bits": 16}}}, 356_405_248, 416_372_992),
        ({"extra_config": WIDER}, 335_925_248, 379_508_992),
        ({"data_type": "mx_fp", "group_size": 32}, 326_782_976, 362_470_400),
    ],
)
def test_a_rank_holds_what_the_engine_makes_room_for(further: dict[str, Any], dense: int, experts: int) -> None:
    quantization = parse_quantization(STATED | further)

    for config, expected in ((SMALL_DENSE, dense), (SMALL_EXPERTS, experts)):
        held = rank_weights(parse_architecture(config), layout=Layout(), quantization=quantization).param_bytes
        assert held == pytest.approx(expected, rel=0.004)


def test_towers_stay_whole_where_blocks_are_stated() -> None:
    stored = parse_quantization(STATED | {"block_name_to_quantize": ["model.language_model.layers"]})
    seeing = parse_quantization(STATED | {"to_quant_block_names": "model.language_model.layers,model.visual.blocks"})

    assert stored.of("visual").keeps("visual")
    assert not stored.of("model.layers.3.mlp.down_proj").keeps("model.layers.3.mlp.down_proj")
    assert not seeing.of("visual").keeps("visual")


def test_the_head_is_stored_in_few_bits_only_where_it_is_told_apart() -> None:
    assert parse_quantization(STATED).keeps("lm_head")
    assert not parse_quantization(STATED | {"extra_config": {"lm_head": {"bits": 8}}}).keeps("lm_head")


# vLLM 0.33 `inc.py` (`_validate_raw_config`), `test_inc.py` has the same fields
def test_mxfp8_and_blocks_of_fp8_are_what_other_methods_call_so() -> None:
    wide = parse_quantization(STATED | {"data_type": "mx_fp", "bits": 8, "group_size": 32})
    blocks = parse_quantization(STATED | {"data_type": "fp", "bits": 8, "group_size": [128, 128]})

    assert (wide.scheme, wide.block, wide.weight_format) == ("mxfp8", 32, "fp8")
    assert (blocks.scheme, blocks.block, blocks.weight_format) == ("fp8-block", 128, "fp8")
    assert blocks.expert_variant  # `INCFp8Scheme` has no `get_moe_method`


@pytest.mark.parametrize(
    "further",
    [
        {"bits": 2},
        {"packing_format": "auto_round"},
        {"data_type": "fp"},
        {"data_type": "fp", "group_size": [128, 128]},
        {"data_type": "mx_fp", "packing_format": "auto_round:auto_gptq", "group_size": 32},
    ],
)
def test_what_has_no_rule_is_refused_by_name(further: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedModelError, match="auto-round with"):
        parse_quantization(STATED | further)


@pytest.mark.parametrize("missing", ["bits", "group_size"])
def test_what_the_loader_does_not_guess_is_not_guessed(missing: str) -> None:
    # inc.py (`from_config`): `get_from_keys` has no default
    with pytest.raises(MissingConfigFieldError) as refusal:
        parse_quantization({name: value for name, value in STATED.items() if name != missing})

    assert refusal.value.field == f"model_config.quantization_config.{missing}"


def test_a_module_without_bits_has_those_of_the_checkpoint() -> None:
    # config_parser.py (`get_config`): `cfg.get("bits", self._config.weight_bits)`
    stored = parse_quantization(STATED | {"bits": 8, "extra_config": {"model.layers.3.mlp": {"group_size": 64}}})

    assert stored.of("model.layers.3.mlp.down_proj").scheme == "int8-group"
    assert stored.of("model.layers.3.mlp.down_proj").block == 64
