"""From a published config.json to an `Architecture`."""

from collections.abc import Mapping
from dataclasses import replace

from service.engine.config_reader import architecture_name, text_reader
from service.engine.families.parts.attention import hidden_size
from service.engine.families.parts.context import context_lengths
from service.engine.families.parts.draft import parse_mtp
from service.engine.families.parts.embedding import (
    alternating_updates,
    embedding_facts,
    per_layer_embeddings,
    with_details,
)
from service.engine.families.parts.feed_forward import PURELY_RECURRENT, mlp_layers
from service.engine.families.parts.profiling import profiled
from service.engine.families.parts.recurrent import shared_blocks
from service.engine.families.parts.restated import restated
from service.engine.families.parts.wrapped_towers import parse_towers
from service.engine.families.registry import attention_rule, language_model
from service.engine.layers import Architecture, DecoderLayer

HYPER_CONNECTED = ("DeepseekV4", "HYV4")
DTYPES = {"bfloat16": "bfloat16", "float16": "float16", "half": "float16", "float32": "bfloat16", "float": "bfloat16"}


def parse_architecture(config: Mapping[str, object]) -> Architecture:
    """Return what a config describes.

    Raises:
        UnsupportedModelError: an architecture, layer type or option without a rule, by its name.
        MissingConfigFieldError: a field that the rules need and the config does not state.
    """
    name = architecture_name(config)
    inner = language_model(config, name)
    rule = attention_rule(inner)
    reader = restated(text_reader(config), inner)
    mixers = rule(reader)
    mlps = mlp_layers(reader, inner, len(mixers))
    facts = embedding_facts(reader, inner)
    longest, unasked = context_lengths(reader)
    architecture = Architecture(
        name=name,
        dtype=DTYPES.get(str(reader.raw("dtype", "torch_dtype") or "bfloat16").removeprefix("torch."), "bfloat16"),
        hidden_size=hidden_size(reader),
        vocab_size=reader.positive("vocab_size", "padded_vocab_size"),
        max_position_embeddings=longest,
        default_max_model_len=unasked,
        layers=tuple(
            DecoderLayer(index=index, mixers=with_details(reader, inner, it), mlp=mlps[index])
            for index, it in enumerate(mixers)
        ),
        ties_embeddings=facts.ties_embeddings,
        norms_per_layer=facts.norms_per_layer,
        norm_biases=facts.norm_biases,
        has_head_bias=facts.has_head_bias,
        residual_streams=reader.positive("hc_mult", default=1) if name.startswith(HYPER_CONNECTED) else 1,
        mixes_streams=name.startswith("DeepseekV4"),
        is_hybrid=name not in PURELY_RECURRENT,
        has_attention_residuals=reader.raw("attn_res_block_size") is not None,
        shared_blocks=shared_blocks(reader, inner),
        per_layer_embeddings=per_layer_embeddings(reader, name),
        alternating_updates=alternating_updates(reader, name),
        extra_parameters=facts.extra_parameters,
        encoder=profiled(parse_towers(config, name), config, name),
    )
    return replace(architecture, mtp=parse_mtp(reader, architecture))
