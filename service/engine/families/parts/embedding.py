"""Embeddings, norms and biases: what each family has around its matrices."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import hidden_size
from service.engine.layers import AlternatingUpdates, Attention, GroupedQueryAttention, PerLayerEmbeddings

TIED_BY_DEFAULT = (
    "Gemma",
    "Cohere",
    "Starcoder2",
    "FalconForCausalLM",
    "FalconMamba",
    "GPT2",
    "GPTBigCode",
    "Bloom",
    "OPT",
    "Lfm2",
    "Zamba2",
    "VaultGemma",
)
NORM_BIASES = (
    "Starcoder2",
    "FalconForCausalLM",
    "StableLm",
    "GPT2",
    "Jais2",
    "Orion",
    "GPTNeoX",
    "GPTJ",
    "GPTBigCode",
    "OPT",
    "Bloom",
    "Nemotron",
    "PhiForCausalLM",
    "PhiMoE",
)
FOUR_NORMS = (
    "Gemma2",
    "Gemma3",
    "Gemma4",
    "Glm4ForCausalLM",
    "MuseGlimmer",
    "Kolibri1",
    "Afmoe",
    "Longcat",
    "Plamo3",
)
ONE_NORM = ("Cohere", "NemotronH", "MambaForCausalLM", "Mamba2", "FalconMamba", "GPTJ", "PhiForCausalLM", "Zamba2")
PER_LAYER_EMBEDDINGS = ("Gemma3n", "Gemma4")
BIASED_QKV = ("Qwen2",)
HEAD_NORMS = (
    "Qwen3",
    "Gemma3",
    "Gemma4",
    "Exaone4",
    "Laguna",
    "Lfm2",
    "HunYuanDense",
    "MiniMaxM3",
    "Step3p",
    "ExaoneMo",
    "Kolibri1",
    "Mellum",
    "Afmoe",
    "Plamo3",
)
# Have biases in every matrix, unless this field says otherwise.
BIASED_THROUGHOUT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "GPT2LMHeadModel": "attention_bias",
        "GPTNeoXForCausalLM": "attention_bias",
        "GPTBigCodeForCausalLM": "attention_bias",
        "BloomForCausalLM": "attention_bias",
        "PhiForCausalLM": "attention_bias",
        "OPTForCausalLM": "enable_bias",
    }
)
LEARNT_POSITIONS = frozenset({"GPT2LMHeadModel", "GPTBigCodeForCausalLM", "OPTForCausalLM"})
BAILING = ("Bailing", "SarvamMoE", "Param2MoE")
WITH_SINKS = ("GraniteSWA", "GraniteMoeSWA")
WIDE_NORMS = ("MiniMaxM2",)
WHOLE_WIDE_NORMS = ("Olmo2", "Olmo3", "Olmoe", "FlexOlmo", "OlmoHybrid")  # same, but on every rank


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingFacts:
    """What surrounds the layers."""

    ties_embeddings: bool
    norms_per_layer: int
    norm_biases: bool
    has_head_bias: bool
    extra_parameters: int


def embedding_facts(reader: ConfigReader, name: str) -> EmbeddingFacts:
    """Return how embeddings are tied and how many norms a layer has."""
    norms = 2
    if name.startswith(FOUR_NORMS):
        norms = 4
    elif name.startswith(ONE_NORM):
        norms = 1
    elif name == "AXK1ForCausalLM":
        norms = 3
    elif name == "OlmoForCausalLM":  # its norms have no weights
        norms = 0
    elif (name == "HyperCLOVAXForCausalLM" and reader.flag("use_post_norm", default=True)) or (
        name.startswith("Pangu") and reader.flag("sandwich_norm")
    ):
        norms = 4
    elif name == "FalconForCausalLM":
        norms = _falcon_norms(reader)
    has_biases = name.startswith(NORM_BIASES) and not name.startswith("NemotronH")
    return EmbeddingFacts(
        ties_embeddings=_ties_embeddings(reader, name),
        norms_per_layer=norms,
        norm_biases=has_biases,
        has_head_bias=reader.flag("lm_head_bias", default=name == "GPTJForCausalLM"),
        extra_parameters=_extra_parameters(reader, name),
    )


def _ties_embeddings(reader: ConfigReader, name: str) -> bool:
    """Return whether the head is the embedding table; a multimodal wrapper's word counts more than its inner config's.

    Source: vLLM 0.33 `config/vllm.py` (`with_hf_config`).
    """
    outer = reader.outer("tie_word_embeddings")
    if isinstance(outer, bool):
        return outer
    return reader.flag("tie_word_embeddings", default=name.startswith(TIED_BY_DEFAULT))


def _falcon_norms(reader: ConfigReader) -> int:
    """Return Falcon's norms: two in the new decoder, one where attention and feed-forward run in parallel."""
    if reader.flag("new_decoder_architecture"):
        return reader.optional("num_ln_in_parallel_attn") or 2
    return 1 if reader.flag("parallel_attn", default=True) else 2


def with_details(reader: ConfigReader, name: str, mixers: tuple[Attention, ...]) -> tuple[Attention, ...]:
    """Return the mixers with the biases and norms of their family."""
    return tuple(
        _detailed(reader, name, mixer) if isinstance(mixer, GroupedQueryAttention) else mixer for mixer in mixers
    )


def _detailed(reader: ConfigReader, name: str, attention: GroupedQueryAttention) -> GroupedQueryAttention:
    qkv_bias = attention.has_query_bias or reader.flag("attention_bias", "use_bias", "bias", "qkv_bias")
    output_bias = attention.has_output_bias or reader.flag("attention_bias", "use_bias", "attention_out_bias")
    if name.startswith(BIASED_QKV):
        qkv_bias, output_bias = reader.flag("qkv_bias", "attention_bias", default=True), False
    if name in ("MiMoForCausalLM", "SeedOssForCausalLM", "GlmForCausalLM", "Glm4ForCausalLM", "Glm4MoeForCausalLM"):
        output_bias = reader.flag("attention_out_bias")
        qkv_bias = reader.flag("attention_bias", default=name in ("MiMoForCausalLM", "SeedOssForCausalLM"))
    if name in BIASED_THROUGHOUT:
        qkv_bias = output_bias = reader.flag(BIASED_THROUGHOUT[name], default=True)
    if name == "PanguEmbeddedForCausalLM":
        output_bias = qkv_bias
    if name == "TeleChat2ForCausalLM":
        qkv_bias, output_bias = False, True
    if name.startswith(BAILING):
        qkv_bias, output_bias = reader.flag("use_bias") or reader.flag("use_qkv_bias"), reader.flag("use_bias")
    if name == "Starcoder2ForCausalLM":
        qkv_bias = output_bias = reader.flag("use_bias", default=True)
    return replace(
        attention,
        has_query_bias=qkv_bias,
        has_key_value_bias=qkv_bias,
        has_output_bias=output_bias,
        norm_elements=_norm_elements(reader, name, attention),
        has_wide_norms=name.startswith(WIDE_NORMS),
        has_sinks=attention.has_sinks or name.startswith(WITH_SINKS),
    )


def _norm_elements(reader: ConfigReader, name: str, attention: GroupedQueryAttention) -> int:
    """Return the elements of query and key norms that every rank holds whole."""
    if name.startswith(WHOLE_WIDE_NORMS):
        return (attention.num_attention_heads + attention.num_key_value_heads) * attention.head_dim
    if name.startswith(BAILING) and reader.flag("use_qk_norm"):
        has_biases = not reader.flag("use_rmsnorm") and not name.startswith("Param2MoE")
        return (4 if has_biases else 2) * attention.head_dim
    if not _has_head_norms(reader, name):
        return 0
    return (2 if attention.shares_cache_with is None else 1) * attention.head_dim  # no key of its own, no norm of it


def _has_head_norms(reader: ConfigReader, name: str) -> bool:
    if name.startswith(HEAD_NORMS):
        return True
    if name == "HunYuanMoEV1ForCausalLM":
        return reader.flag("use_qk_norm", default=True)
    if name.startswith("HYV3"):
        return reader.flag("qk_norm")
    return name.startswith("Glm4Moe") and reader.flag("use_qk_norm")


def per_layer_embeddings(reader: ConfigReader, name: str) -> PerLayerEmbeddings | None:
    """Return the embeddings that every layer has of its own; the config classes supply 256 elements."""
    if not name.startswith(PER_LAYER_EMBEDDINGS) or name.startswith("Gemma4Unified"):
        return None
    width = reader.integer("hidden_size_per_layer_input", default=256)
    if reader.states("hidden_size_per_layer_input") and reader.own("hidden_size_per_layer_input") is None:
        width = 0
    if not width:
        return None
    return PerLayerEmbeddings(
        vocab_size=reader.positive("vocab_size_per_layer_input", default=262_144),
        width=width,
    )


def alternating_updates(reader: ConfigReader, name: str) -> AlternatingUpdates | None:
    """Return Gemma 3n's copies of the stream."""
    if not name.startswith("Gemma3n"):
        return None
    return AlternatingUpdates(
        num_streams=reader.positive("altup_num_inputs", default=4),
        residual_rank=reader.positive("laurel_rank", default=64),
    )


def _extra_parameters(reader: ConfigReader, name: str) -> int:
    """Return learnt positions (OPT keeps two rows before the first), or the norm after Bloom's embeddings."""
    if name == "BloomForCausalLM":
        return 2 * hidden_size(reader)
    if name not in LEARNT_POSITIONS:
        return 0
    rows = reader.positive("n_positions", "max_position_embeddings") + (2 if name == "OPTForCausalLM" else 0)
    return rows * hidden_size(reader)
