"""Nemotron-H and its successors, in which every layer is one thing: mixer or feed-forward.

Sources:
    vLLM 0.33 `model_executor/models/nemotron_h.py`, `nemotron_h_mtp.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from service.engine.config_reader import MAX_LAYERS, ConfigReader, is_list, is_mapping, unknown_kind
from service.engine.families.parts.attention import Mixers, alone, base_attention, check_length
from service.engine.families.parts.dense import Dense
from service.engine.families.parts.experts import COUNT_NAMES, Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.mtp import Draft, last_with_softmax
from service.engine.families.parts.rotary import no_tables
from service.engine.layers import (
    Architecture,
    Attention,
    DecoderLayer,
    DraftHead,
    GroupedQueryAttention,
    Mamba2,
    Mlp,
    NoAttention,
    NoMlp,
)

# Newer config files name the same layers by their role.
NAMES: Final = {"linear_attention": "mamba", "full_attention": "attention"}
LETTERS: Final = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
DRAFT_LETTERS: Final = {"*": "attention", "-": "mlp", "E": "moe"}


def _kinds(reader: ConfigReader) -> tuple[str, ...]:
    """Return what each layer is: mamba, attention, mlp or moe."""
    stated = reader.strings("layers_block_type")
    if stated is not None:
        _check_depth("layers_block_type", stated)
        return tuple(NAMES.get(kind, kind) for kind in stated)
    pattern = reader.text("hybrid_override_pattern")
    _check_depth("hybrid_override_pattern", pattern)
    unknown = set(pattern) - set(LETTERS)
    if unknown:
        raise unknown_kind("hybrid_override_pattern", min(unknown), "M, *, - and E")
    return tuple(LETTERS[letter] for letter in pattern)


def _check_depth(field: str, stated: Sequence[str]) -> None:
    if not 1 <= len(stated) <= MAX_LAYERS:
        raise unknown_kind(field, f"{len(stated)} layers", f"1 to {MAX_LAYERS} layers")


def _attention(reader: ConfigReader) -> Mixers:
    """Return each layer's mixer, or none in layers that only feed forward."""
    attention = _softmax(reader)
    mixer_of: dict[str, Attention] = {
        "mamba": _state_space(reader),
        "attention": attention,
        "mlp": NoAttention(),
        "moe": NoAttention(),
    }
    kinds = _kinds(reader)
    for kind in kinds:
        if kind not in mixer_of:
            raise unknown_kind("layers_block_type", kind, ", ".join(mixer_of))
    return alone(mixer_of[kind] for kind in kinds)


def _softmax(reader: ConfigReader) -> GroupedQueryAttention:
    attention = base_attention(reader)
    head_dim = reader.integer("attention_head_dim", "head_dim", default=0) or attention.head_dim
    attention = replace(attention, head_dim=head_dim, v_head_dim=head_dim)
    window = reader.integer("sliding_window", default=0)
    return replace(attention, sliding_window=window) if window else attention


def _state_space(reader: ConfigReader) -> Mamba2:
    return Mamba2(
        num_heads=reader.positive("mamba_num_heads"),
        head_dim=reader.positive("mamba_head_dim"),
        state_size=reader.positive("ssm_state_size"),
        num_groups=reader.positive("n_groups"),
        conv_kernel_size=reader.positive("conv_kernel"),
        state_dtype=reader.text("mamba_ssm_cache_dtype", default="float32"),
        has_bias=reader.flag("use_bias", "mamba_proj_bias"),
        has_conv_bias=reader.flag("use_conv_bias", default=True),
    )


def _shared(reader: ConfigReader, size: int, _stated: int) -> int:
    each = reader.positive("moe_shared_expert_intermediate_size", default=size)
    return each * reader.integer("n_shared_experts", default=0)


EXPERTS: Final = Experts(shared=_shared, has_score_correction=True, splits_tokens=True, computes_router_wide=True)


def _feed_forward(reader: ConfigReader, _num_layers: int) -> tuple[Mlp, ...]:
    """Return the feed-forward layers, which stand alone between the mixers."""
    kinds = _kinds(reader)
    networks: dict[str, Mlp] = {}
    for kind in dict.fromkeys(kinds):
        if kind == "mlp":
            networks[kind] = Dense().read(reader, is_gated=False)
        elif kind == "moe":
            networks[kind] = EXPERTS.read(reader, reader.positive(*COUNT_NAMES), is_gated=False)
    return tuple(networks.get(kind, NoMlp()) for kind in kinds)


def _modules(reader: ConfigReader, architecture: Architecture, modules: int) -> DraftHead:
    """Return the layers of `mtp_hybrid_override_pattern`, each like the model's last of its kind."""
    stated = reader.strings("mtp_layers_block_type") or ()
    kinds = tuple(NAMES.get(kind, kind) for kind in stated) or tuple(
        DRAFT_LETTERS.get(kind, kind) for kind in reader.text("mtp_hybrid_override_pattern", default="*E")
    )
    _check_depth("mtp_hybrid_override_pattern", kinds * modules)
    start = len(architecture.layers)
    last = {kind: _last_of(architecture, kind) for kind in dict.fromkeys(kinds)}
    layers = [last[kind] for kind in kinds] * modules
    return DraftHead(
        body=replace(
            architecture, layers=tuple(replace(layer, index=start + index) for index, layer in enumerate(layers))
        ),
        layer_modules=tuple(f"mtp.layers.{index}." for index in range(len(layers))),
        num_modules=modules,
        projection_module="mtp.layers.0.eh_proj",
        is_projection_split=True,
    )


def _last_of(architecture: Architecture, kind: str) -> DecoderLayer:
    if kind == "attention":
        return last_with_softmax(architecture)
    if kind == "moe":
        without_mixer = [
            layer for layer in architecture.layers if layer.mixers == (NoAttention(),) and layer.mlp != NoMlp()
        ]
        if without_mixer:
            return without_mixer[-1]
    raise unknown_kind("mtp_hybrid_override_pattern", kind, "* (attention) and E (experts)")


def _blocks(reader: ConfigReader) -> tuple[Mapping[str, object], ...]:
    """Return what `block_configs` states of each layer on its own, in which its kind stands too (Puzzle)."""
    blocks = reader.raw("block_configs")
    stated = tuple(block for block in blocks if is_mapping(block)) if is_list(blocks) else ()
    kinds = _kinds(reader)
    check_length("block_configs", len(stated), len(kinds), "what differs from the model, for every layer")
    return stated[: len(kinds)]


def _feed_forwards_of_their_own(reader: ConfigReader, _num_layers: int) -> tuple[Mlp, ...]:
    """Return the same, with experts that differ from layer to layer."""
    kinds, blocks = _kinds(reader), _blocks(reader)
    if "mlp" in kinds:
        raise unknown_kind("layers_block_type", "mlp", "mamba, attention, moe")
    for kind, block in zip(kinds, blocks, strict=True):
        if NAMES.get(str(block.get("block_type")), block.get("block_type")) != kind:
            raise unknown_kind("block_configs", block.get("block_type"), f"{kind}, as in layers_block_type")
        if kind != "moe" and set(block) - {"block_type"}:
            raise unknown_kind("block_configs", sorted(set(block) - {"block_type"}), f"block_type alone for {kind}")
    return tuple(
        _own_experts(reader, block) if kind == "moe" else NoMlp() for kind, block in zip(kinds, blocks, strict=True)
    )


def _own_experts(reader: ConfigReader, block: Mapping[str, object]) -> Mlp:
    own = reader.restated(block)
    return EXPERTS.read(own, own.positive(*COUNT_NAMES), is_gated=False)


_HYBRID: Final = Family(
    classes=("NemotronHForCausalLM",),
    rotary=no_tables,
    model_types=("nemotron_h",),
    attention=_attention,
    feed_forward=_feed_forward,
    norms_per_layer=1,
    draft=Draft(build=_modules),
)
FAMILIES: Final = (
    _HYBRID,
    replace(
        _HYBRID,
        classes=("NemotronHPuzzleForCausalLM",),
        model_types=("nemotron_h_puzzle",),
        feed_forward=_feed_forwards_of_their_own,
        draft=None,  # of modules with experts of their own no published config is known
    ),
)
