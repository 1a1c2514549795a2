"""Configs as transformers 5.24 saves them, beside those that publishers wrote of the same models.

Who tunes or quantizes a model saves its config anew, with names of its class. Both describe the same model.

Source:
    transformers 5.24 `models/`: gemma4, minimax_m3_vl, bailing_hybrid, nemotron_h, molmo2, falcon (the configuration
    classes, whose `to_diff_dict` is what is saved).
"""

from collections.abc import Mapping
from typing import Any

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.errors import UnsupportedModelError
from service.engine.families import parse_architecture
from service.engine.layers import Architecture

ROPE_DEFAULT = {"rope_type": "default", "rope_theta": 10_000.0}


def published(catalog: Snapshot, model: str) -> dict[str, Any]:
    return dict(catalog.model_entries[model].config)


def same_layers(one: Architecture, other: Architecture) -> bool:
    return (one.layers, one.encoder, one.vocab_size, one.ties_embeddings, set(one.rotary_tables)) == (
        other.layers, other.encoder, other.vocab_size, other.ties_embeddings, set(other.rotary_tables),
    )  # fmt: skip


def without(config: Mapping[str, Any], *names: str, **others: Any) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name not in names} | others


@pytest.mark.parametrize("model", ["gemma-4-26b-a4b-it", "gemma-4-31b-it", "gemma-4-12b-it"])
def test_full_layers_of_gemma_4_state_their_heads_layer_by_layer(catalog: Snapshot, model: str) -> None:
    config = published(catalog, model)
    text = config["text_config"]
    own = {"head_dim": text["global_head_dim"], "num_key_value_heads": text["num_global_key_value_heads"]}
    full = [index for index, kind in enumerate(text["layer_types"]) if kind == "full_attention"]
    by_layer = {f"{index:02}": own for index in full}
    names = ("global_head_dim", "num_global_key_value_heads")
    saved = {**config, "text_config": without(text, *names, per_layer_config=by_layer)}

    assert same_layers(parse_architecture(saved), parse_architecture(config))

    by_layer[f"{full[0]:02}"] = {**own, "num_key_value_heads": 2 * own["num_key_value_heads"]}
    with pytest.raises(UnsupportedModelError, match="per_layer_config"):
        parse_architecture(saved)


def test_blocks_of_minimax_m3_are_selected_by_kinds_of_layers(catalog: Snapshot) -> None:
    config = published(catalog, "minimax-m3")
    text, stated = config["text_config"], config["text_config"]["sparse_attention_config"]
    kinds = ["minimax_m3_sparse" if each else "full_attention" for each in stated["sparse_attention_freq"]]
    saved = {
        **config,
        "text_config": without(
            text, "sparse_attention_config", layer_types=kinds, index_n_heads=stated["sparse_num_index_heads"],
            index_head_dim=stated["sparse_index_dim"], index_block_size=128,
        ),
    }  # fmt: skip

    assert any(mixer.selector is not None for mixer in parse_architecture(config).mixers)  # type: ignore[attr-defined]
    assert same_layers(parse_architecture(saved), parse_architecture(config))


@pytest.mark.parametrize("model", ["ling-2.6-flash", "ling-3.0-flash"])
def test_heads_of_linear_attention_are_told_apart_from_what_turns(catalog: Snapshot, model: str) -> None:
    config = published(catalog, model)
    saved = without(
        config, "max_position_embeddings", head_dim=config["qk_rope_head_dim"], linear_head_dim=config["head_dim"],
        model_max_length=config["max_position_embeddings"],
    )  # fmt: skip

    assert same_layers(parse_architecture(saved), parse_architecture(config))
    assert parse_architecture(saved).max_position_embeddings == config["max_position_embeddings"]


def test_drafting_layers_of_nemotron_h_are_named_by_their_role(catalog: Snapshot) -> None:
    config = published(catalog, "nemotron-3-super-120b-a12b")
    saved = without(config, "mtp_hybrid_override_pattern", mtp_layers_block_type=["full_attention", "moe"])

    assert config["mtp_hybrid_override_pattern"] == "*E"
    heads = [parse_architecture(each).mtp for each in (saved, config)]
    layers = [None if head is None else (head.body.layers, head.layer_modules) for head in heads]
    assert layers[0] == layers[1] is not None


def test_molmo_2_s_tower_has_its_class_s_names(catalog: Snapshot) -> None:
    config = published(catalog, "molmo2-4b")
    tower = config["vit_config"]
    saved = without(
        config, "vit_config", vision_config=without(
            tower, "image_patch_size", "image_num_pos", num_hidden_layers=25, patch_size=tower["image_patch_size"],
            num_position_embeddings=tower["image_num_pos"],
        ), adapter_config=without(config["adapter_config"], "vit_layers", vision_feature_layer=[24, 18]),
        text_config=without(config["text_config"], "qkv_bias", attention_bias=False),
    )  # fmt: skip

    assert same_layers(parse_architecture(saved), parse_architecture(config))


def test_falcon_s_class_supplies_its_positions(catalog: Snapshot) -> None:
    """The class has 2,048; `RefinedWeb`'s own class has none, and any length is accepted."""
    config = published(catalog, "falcon-7b")

    assert "max_position_embeddings" not in config
    assert parse_architecture(config).max_position_embeddings == 2_048
    assert parse_architecture({**config, "model_type": "RefinedWeb"}).max_position_embeddings > 1 << 20


@pytest.mark.parametrize(
    ("model", "fraction"),
    [("glm-4-9b-0414", 0.5), ("pythia-1b", 0.25), ("stable-code-3b", 0.25), ("phi-1.5", 0.5), ("bamba-9b-v1", 0.5)],
)
def test_the_turned_part_of_a_head_is_what_the_class_supplies(catalog: Snapshot, model: str, fraction: float) -> None:
    config = published(catalog, model)
    bare = without(config, "partial_rotary_factor", "rotary_pct", "rope_parameters", "attn_rotary_emb")
    saved = {**bare, "rope_parameters": {**ROPE_DEFAULT, "partial_rotary_factor": fraction}}

    assert parse_architecture(bare).rotary_tables == parse_architecture(saved).rotary_tables


def test_layers_that_turn_alike_share_a_table(catalog: Snapshot) -> None:
    config = published(catalog, "olmo-3-7b-instruct")
    nested = {"sliding_attention": ROPE_DEFAULT, "full_attention": ROPE_DEFAULT}
    apart = {**nested, "full_attention": {**ROPE_DEFAULT, "rope_theta": 500_000.0}}

    assert len(parse_architecture({**config, "rope_parameters": nested}).rotary_tables) == 1
    assert len(parse_architecture({**config, "rope_parameters": apart}).rotary_tables) == 2


def test_step_3_5_turns_half_of_a_head_in_full_layers_and_all_in_others(catalog: Snapshot) -> None:
    config = published(catalog, "step-3.5-flash")
    nested = {
        "sliding_attention": {**ROPE_DEFAULT, "partial_rotary_factor": 1.0},
        "full_attention": {**config["rope_scaling"], "rope_theta": 5e6, "partial_rotary_factor": 0.5},
    }
    names = ("partial_rotary_factors", "rope_scaling", "rope_theta")

    assert {table.width for table in parse_architecture(config).rotary_tables} == {64, 128}
    assert same_layers(
        parse_architecture({**without(config, *names), "rope_parameters": nested}), parse_architecture(config)
    )


def test_parts_of_a_head_that_are_no_numbers_are_passed_over(catalog: Snapshot) -> None:
    config = published(catalog, "step-3.5-flash")
    unread = {**config, "partial_rotary_factors": [[0.5]] * len(config["partial_rotary_factors"])}

    assert len(parse_architecture(unread).rotary_tables) == 1
