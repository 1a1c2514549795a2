"""Inkling: heads with scores by distance, short convolutions everywhere, and shared experts that take routed shares.

Sources:
    vLLM 0.33 `models/inkling/`: configs.py (`InklingModelConfig`, and how the names of Transformers differ),
    nvidia/model.py, nvidia/attention.py, nvidia/moe.py, nvidia/mtp.py, common/towers.py, common/mm_preprocess.py
    (`MAX_AUDIO_TOKENS`); `config/speculative.py` (`mtp_config`).
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader, is_list, is_mapping, unknown_kind
from service.engine.families.parts.attention import Mixers, base_attention, not_stated
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.mtp import STATED_COUNT, Draft, head_of
from service.engine.families.parts.norms import on_heads
from service.engine.families.parts.profiling import Item
from service.engine.families.parts.rotary import no_tables
from service.engine.families.parts.sizes import hidden_size, num_hidden_layers
from service.engine.families.parts.sparsity import first_dense_as
from service.engine.families.parts.towers import audio_part
from service.engine.layers import Architecture, ConvolvedAttention, DenseMlp, DraftHead, Encoder

AUDIO_TOKENS: Final = 12_000  # of the longest clip, "~10 min at 20 tokens/s"
KERNEL: Final = 4  # of the convolutions, the only one that vLLM's kernels have [tokens]
SIZES_OF_PATCHES: Final = {"patch_size": 40, "temporal_patch_size": 2, "n_channels": 3, "n_layers": 4}
# What `plan_out_scales` makes of these: inputs and outputs of each matrix but the last, which has the model's width.
PATCH_MATRICES: Final = ((3 * 25, 128), (4 * 128, 320), (16 * 320, 4_800))
LAST_INPUTS: Final = 2 * 4_800
# How vLLM's class renames modules, in the order of its rules.
RENAMED: Final = (
    (re.compile(r"^model\.llm\.layers\."), "model.layers."),
    (re.compile(r"^model\.(?:llm\.)?unembed"), "lm_head"),
    (re.compile(r"\.attn(?=\.|$)"), ".self_attn"),
    (re.compile(r"\.w[qkvr]_d[uv](?=\.|$)"), ".q_proj"),
    (re.compile(r"\.wo_ud(?=\.|$)"), ".o_proj"),
    (re.compile(r"\.w13_dn(?=\.|$)"), ".gate_up_proj"),
    (re.compile(r"\.w2_md(?=\.|$)"), ".down_proj"),
)
LISTS: Final = ("exclude_modules", "ignore", "ignored_layers")


def _restated(reader: ConfigReader) -> Mapping[str, object]:
    """Return the widths under the names of Transformers, and the prediction layers that stand beside the model."""
    dense, drafts = reader.integer("dense_intermediate_size", default=0), _drafting(reader)
    widths = {"intermediate_size": dense, "moe_intermediate_size": reader.positive("intermediate_size")}
    return {
        **(widths if dense and reader.raw("moe_intermediate_size") is None else {}),
        STATED_COUNT: drafts.integer(STATED_COUNT, default=0),
    }


def _drafting(reader: ConfigReader) -> ConfigReader:
    return ConfigReader(reader.mapping("mtp_config") or {})


def _heads(reader: ConfigReader) -> tuple[ConvolvedAttention, ConvolvedAttention]:
    """Return the heads of layers that see everything, and of those with a window.

    Raises:
        UnsupportedModelError: convolutions as no kernel runs them.
    """
    kernel = reader.positive("sconv_kernel_size", "conv_kernel_size", default=KERNEL)
    if kernel != KERNEL:
        raise unknown_kind("sconv_kernel_size", kernel, str(KERNEL))
    plain = base_attention(reader)
    full = ConvolvedAttention(
        num_attention_heads=plain.num_attention_heads,
        num_key_value_heads=plain.num_key_value_heads,
        head_dim=plain.head_dim,
        v_head_dim=plain.head_dim,
        has_query_bias=reader.flag("q_bias"),
        has_key_value_bias=reader.flag("q_bias"),
        has_output_bias=reader.flag("o_bias"),
        norm_elements=2 * plain.head_dim,
        hidden_size=hidden_size(reader),
        conv_kernel_size=kernel,
        relative_rank=reader.positive("d_rel", default=16),
        relative_extent=reader.positive("rel_extent", default=1_024),
    )
    width = reader.positive("swa_head_dim", default=full.head_dim)
    sliding = replace(
        full,
        num_attention_heads=reader.positive("swa_num_attention_heads", default=full.num_attention_heads),
        num_key_value_heads=reader.positive("swa_num_key_value_heads", default=full.num_key_value_heads),
        head_dim=width,
        v_head_dim=width,
        norm_elements=2 * width,
    )
    return full, sliding.windowed(reader.positive("sliding_window_size", default=512))


def _attention(reader: ConfigReader) -> Mixers:
    """Return windows in the layers that `local_layer_ids` names."""
    layers, local = num_hidden_layers(reader), reader.integers("local_layer_ids")
    if local is None:
        raise not_stated(
            "local_layer_ids", "the numbers of the layers with a window, counted from 0", every_layer=False
        )
    if any(not 0 <= layer < layers for layer in local):
        raise unknown_kind("local_layer_ids", list(local), f"layers from 0 to {layers - 1}")
    full, sliding = _heads(reader)
    named = frozenset(local)
    mixers: dict[bool, tuple[ConvolvedAttention, ...]] = {True: (sliding,), False: (full,)}
    return tuple(mixers[layer in named] for layer in range(layers))


def _modules(reader: ConfigReader, architecture: Architecture, modules: int) -> DraftHead:
    """Return dense layers, with a window or without, of which as many are built as tokens are drafted."""
    full, sliding = _heads(reader)
    local = frozenset(_drafting(reader).integers("local_layer_ids") or ())
    dense = DenseMlp(intermediate_size=reader.positive("intermediate_size"))
    head = head_of(architecture, replace(architecture.layers[-1], mlp=dense), modules, first="model.mtp.layers")
    layers = tuple(
        replace(layer, mixers=(sliding if depth in local else full,)) for depth, layer in enumerate(head.body.layers)
    )
    return replace(head, body=replace(head.body, layers=layers), num_norms=2, builds_as_drafted=True)


def _patches(vision: ConfigReader, out: int) -> int:
    """Return the parameters of matrices over ever larger patches, each but the last with a norm.

    Raises:
        UnsupportedModelError: patches of another size, which are merged otherwise.
    """
    for name, size in SIZES_OF_PATCHES.items():
        if (stated := vision.positive(name)) != size:
            raise unknown_kind(f"vision_config.{name}", stated, str(size))
    norm = out if vision.flag("use_vision_norm") else 0
    return sum(inputs * outputs + outputs for inputs, outputs in PATCH_MATRICES) + LAST_INPUTS * out + norm


def _tower(outer: ConfigReader, text: ConfigReader) -> Encoder | None:
    """Return the part that reads patches of images, and one vector for each level of each band of sound."""
    vision, sound, out = outer.mapping("vision_config"), audio_part(outer), hidden_size(text)
    seen = 0 if vision is None else _patches(ConfigReader(vision), out)
    levels = sound.integer("n_mel_bins", default=0) * sound.integer("mel_vocab_size", default=0)
    heard = (levels + (1 if sound.flag("use_audio_norm") else 0)) * out if levels else 0
    return Encoder(split_parameters=0, whole_parameters=seen + heard) if seen or heard else None


def _renamed(stated: Mapping[str, object]) -> Mapping[str, object]:
    """Return a quantization whose lists name modules as the loader does, in itself or in ModelOpt's inner part."""
    inner = stated.get("quantization")
    lists = {name: entries for name in LISTS if is_list(entries := stated.get(name))}
    own = {name: [_as_loaded(entry) for entry in entries] for name, entries in lists.items()}
    return {**stated, **own, **({"quantization": _renamed(inner)} if is_mapping(inner) else {})}


def _as_loaded(name: object) -> object:
    if not isinstance(name, str):
        return name
    for pattern, own in RENAMED:
        name = pattern.sub(own, name)
    return name


_TEXT: Final = Family(
    classes=("InklingForCausalLM",),
    attention=_attention,
    restates=_restated,
    feed_forward=FeedForward(
        experts=Experts(
            has_own_routing=True,
            has_score_correction=True,
            weighs_shared=True,
            sparsity=first_dense_as("dense_mlp_idx"),
        )
    ),
    head_norms=on_heads,
    extra_parameters=hidden_size,  # a norm behind the embeddings
    rotary=no_tables,
    draft=Draft(build=_modules),
    is_convolved=True,
    runs_in_float16=False,
    requantizes=_renamed,
)
FAMILIES: Final = (
    _TEXT,
    replace(
        _TEXT,
        classes=("InklingForConditionalGeneration",),
        tower=_tower,
        largest_item=Item(tokens=AUDIO_TOKENS, patches_per_token=0),
    ),
)
