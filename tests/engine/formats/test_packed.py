"""Which modules GPTQ's rules and AWQ's lists leave in the model's dtype, or store otherwise."""

from typing import Any

import pytest

from service.engine.errors import MissingConfigFieldError, UnsupportedModelError
from service.engine.formats.packed import ACTIVATION_ORDER
from service.engine.formats.quantization import parse_quantization
from service.engine.formats.scheme import ASYMMETRIC, Quantization

GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}
LAYER = "model.layers.3"
Q, STATES, DOWN = f"{LAYER}.self_attn.q_proj", f"{LAYER}.linear_attn.out_proj", f"{LAYER}.mlp.down_proj"
EXPERTS, SHARED = f"{LAYER}.mlp.experts.gate_up_proj", f"{LAYER}.mlp.shared_experts.down_proj"
# config.json of Qwen/Qwen3.5-35B-A3B-GPTQ-Int4
QWEN: dict[str, Any] = {
    "lm_head": {},
    "model.language_model.embed_tokens": {},
    "-:.*attn.*": {},
    "-:.*shared_expert.*": {},
    "-:.*mtp.*": {},
    "-:.*visual.*": {},
}


def of(stored: Quantization, module: str) -> str:
    own = stored.of(module)
    return "none" if own.keeps(module) else own.scheme


def gptq(**stated: Any) -> Quantization:
    return parse_quantization(GPTQ | stated)


def awq(*kept: str, **stated: Any) -> Quantization:
    return parse_quantization(AWQ | {"modules_to_not_convert": list(kept)} | stated)


def test_the_published_recipe_leaves_attention_shared_experts_and_towers() -> None:
    stored = gptq(dynamic=QWEN)

    whole = (Q, STATES, SHARED, "visual.blocks.0.attn.qkv", "lm_head")
    assert {module: of(stored, module) for module in whole} == dict.fromkeys(whole, "none")
    assert {of(stored, module) for module in (DOWN, EXPERTS)} == {"int4-group"}
    assert gptq(dynamic={name: own for name, own in QWEN.items() if name.startswith("-:")}).keeps(Q)


def test_the_first_rule_that_matches_counts() -> None:
    # gptq_utils.py (`get_dynamic_override`): in the order of the rules, from the beginning of a name
    eight = gptq(dynamic={"+:.*down_proj": {"bits": 8, "group_size": 64}, "-:.*": {}})
    assert (of(eight, DOWN), eight.of(DOWN).block, of(eight, Q)) == ("int8-group", 64, "none")

    unsigned = gptq(dynamic={".*q_proj": {"bits": 8}, "-:layers": {}})
    assert (of(unsigned, Q), of(unsigned, DOWN)) == ("int8-group", "int4-group")


def test_experts_are_met_by_the_name_of_their_block() -> None:
    # auto_gptq.py, auto_awq.py: one prefix for all, `...mlp.experts`
    assert of(gptq(dynamic={"-:.*gate_up_proj": {}}), EXPERTS) == "int4-group"
    assert of(gptq(dynamic={"-:.*experts": {}}), EXPERTS) == "none"
    assert of(awq("gate"), EXPERTS) == "int4-group"  # casperhansen/mixtral-instruct-awq: ["gate"]
    assert of(awq("mlp.experts"), EXPERTS) == "none"


@pytest.mark.parametrize(
    ("part", "kept", "quantized"),
    [
        ("self_attn", Q, STATES),
        (".self_attn.", Q, DOWN),
        ("model.layers.3.", Q, "model.layers.30.self_attn.q_proj"),
        ("attn", STATES, DOWN),
        ("visual", "visual.blocks.0.attn.qkv", Q),
        ("block_sparse_moe", EXPERTS, Q),
    ],
)
def test_awq_s_names_are_parts_of_a_module_s(part: str, kept: str, quantized: str) -> None:
    assert (of(awq(part), kept), of(awq(part), quantized)) == ("none", "int4-group")


@pytest.mark.parametrize("name", ["ignore", "exclude_modules", "ignored_layers", "llm_int8_skip_modules"])
def test_lists_of_other_methods_keep_nothing(name: str) -> None:
    # auto_awq.py (`from_config`: `modules_to_not_convert`); auto_gptq.py: `dynamic` alone
    assert of(awq(**{name: ["self_attn"]}), Q) == "int4-group"
    assert of(gptq(**{name: ["self_attn"], "modules_to_not_convert": ["self_attn"]}), Q) == "int4-group"


@pytest.mark.parametrize(("stated", "name"), [(AWQ, "zero_point"), (GPTQ, "desc_act"), (GPTQ, "sym")])
def test_what_the_loader_has_no_default_for_is_asked_for(stated: dict[str, Any], name: str) -> None:
    # base_config.py (`get_from_keys`): "Cannot find any of ['sym'] in the model's quantization config."
    with pytest.raises(MissingConfigFieldError) as refusal:
        parse_quantization({key: value for key, value in stated.items() if key != name})

    assert refusal.value.field == f"model_config.quantization_config.{name}"


def test_a_long_list_of_whole_names_keeps_those() -> None:
    stored = awq("lm_head", *(f"model.layers.{layer}.self_attn.q_proj" for layer in range(80)))

    assert (of(stored, Q), of(stored, DOWN)) == ("none", "int4-group")


def test_the_head_is_quantized_where_the_checkpoint_says_so() -> None:
    # auto_awq.py and auto_gptq.py (`lm_head_quantized`)
    assert [of(each, "lm_head") for each in (gptq(), gptq(lm_head=True))] == ["none", "int4-group"]
    assert [of(each, "lm_head") for each in (awq(), awq(lm_head=True), awq("lm_head", lm_head=True))] == [
        "none",
        "int4-group",
        "none",
    ]
    assert of(gptq(lm_head=True, dynamic={"+:.*lm_head$": {"bits": 8}}), "lm_head") == "int8-group"


def test_a_list_of_quantized_layers_leaves_the_others_but_experts() -> None:
    # gptq_utils.py (`is_layer_gptq_quantized`); lists in lists as transformers writes them
    stored = gptq(modules_in_block_to_quantize=[["mlp.gate_proj", "mlp.up_proj"], ["mlp.down_proj"]])

    assert {of(stored, module) for module in (DOWN, EXPERTS)} == {"int4-group"}
    assert {of(stored, module) for module in (Q, "lm_head")} == {"none"}


@pytest.mark.parametrize(
    ("own", "variant"),
    [({"desc_act": True}, ACTIVATION_ORDER), ({"sym": False}, ASYMMETRIC), ({"desc_act": True, "group_size": -1}, "")],
)
def test_a_rule_s_own_order_and_symmetry_are_told(own: dict[str, Any], variant: str) -> None:
    # gptq_utils.py (`normalize_and_validate_gptq_desc_act`): without groups the order is nothing
    assert gptq(dynamic={"+:.*q_proj": own}).of(Q).variant == variant


@pytest.mark.parametrize(
    "dynamic",
    [
        {"-:(?!model).*": {}},
        {"+:.*": {"bits": 3}},
        {f"-:.*layers.{layer}": {} for layer in range(65)},
        {f"+:.*layers.{layer}": {"group_size": 32 << layer % 2} for layer in range(17)},
    ],
)
def test_rules_that_are_not_read_are_refused(dynamic: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedModelError):
        gptq(dynamic=dynamic)


@pytest.mark.parametrize("missing", ["bits", "group_size"])
@pytest.mark.parametrize("stated", [GPTQ, AWQ], ids=["gptq", "awq"])
def test_what_no_loader_guesses_is_not_guessed(stated: dict[str, Any], missing: str) -> None:
    # auto_gptq.py, auto_awq.py: `get_from_keys` has no default
    with pytest.raises(MissingConfigFieldError) as refusal:
        parse_quantization({name: value for name, value in stated.items() if name != missing})

    assert refusal.value.field == f"model_config.quantization_config.{missing}"


@pytest.mark.parametrize("bits", ["4", True, [4], 4.5])
def test_bits_that_are_no_number_are_refused_where_they_stand(bits: object) -> None:
    with pytest.raises(MissingConfigFieldError) as refusal:
        gptq(bits=bits)

    assert (refusal.value.field, refusal.value.accepted) == ("model_config.quantization_config.bits", "4 or 8")


def test_each_loader_looks_for_bits_under_names_of_its_own() -> None:
    # auto_awq.py: ["w_bit", "bits"], ["q_group_size", "group_size"]; auto_gptq.py: ["bits"], ["group_size"]
    older = {"w_bit": 4, "q_group_size": 64}
    stored = parse_quantization({"quant_method": "awq", "zero_point": True, **older})
    assert (stored.scheme, stored.block) == ("int4-group", 64)
    assert awq(**older).block == 64

    with pytest.raises(MissingConfigFieldError):
        parse_quantization({"quant_method": "gptq", **older})


def test_a_rule_without_bits_has_those_of_the_checkpoint() -> None:
    # gptq_utils.py (`override_config`): `pattern_dict.get(key, default_value)`
    assert of(gptq(bits=8, dynamic={"+:.*q_proj": {"group_size": 64}}), Q) == "int8-group"
