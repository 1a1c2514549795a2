"""Models of the years before Llama: biases in every matrix, norms with biases, learnt positions.

Sources:
    vLLM 0.33 `model_executor/models/`: gpt2.py, gpt_j.py, bloom.py, opt.py; of 0.22 jais.py; the others
    run through the engine's generic backend, `model_executor/models/transformers`.
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.families.parts.attention import (
    Mixers,
    base_attention,
    full_only,
    repeated,
    windowed_as_stated,
)
from service.engine.families.parts.biases import everywhere_unless
from service.engine.families.parts.dense import Dense
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.rotary import no_tables, rotating
from service.engine.families.parts.sizes import hidden_size, nothing

OPT_ROWS_AHEAD: Final = 2  # of the first position


def _multi_query(reader: ConfigReader) -> Mixers:
    """Return one key-value head with `multi_query`."""
    attention = base_attention(reader)
    if reader.flag("multi_query", default=True):
        attention = replace(attention, num_key_value_heads=1)
    return repeated(reader, attention)


def _as_wide_as_the_stream(reader: ConfigReader) -> Mixers:
    """Return full attention of the models whose embeddings are as wide as their stream."""
    width = reader.positive("word_embed_proj_dim", default=hidden_size(reader))
    if width != hidden_size(reader):
        raise unknown_kind("word_embed_proj_dim", width, str(hidden_size(reader)))
    return full_only(reader)


def _positions(reader: ConfigReader) -> int:
    return reader.positive("n_positions", "max_position_embeddings") * hidden_size(reader)


def _opt_positions(reader: ConfigReader) -> int:
    return _positions(reader) + OPT_ROWS_AHEAD * hidden_size(reader)


def _sloped_and_gated(reader: ConfigReader) -> Mixers:
    """Return full attention of JAIS, whose networks are gated and positions told apart by slopes (ALiBi)."""
    for name, usual in (("activation_function", "swiglu"), ("position_embedding_type", "alibi")):
        if reader.text(name) != usual:
            raise unknown_kind(name, reader.raw(name), usual)
    return full_only(reader)


def _embedding_norm(reader: ConfigReader) -> int:
    return 2 * hidden_size(reader)


_PLAIN: Final = FeedForward(is_gated=False, dense=Dense(biased_unless="enable_bias"))
_GPT2: Final = Family(
    classes=("GPT2LMHeadModel",),
    attention=full_only,
    feed_forward=_PLAIN,
    biases=everywhere_unless("attention_bias"),
    has_norm_biases=True,
    ties_embeddings=True,
    extra_parameters=_positions,
    rotary=no_tables,
)
FAMILIES: Final = (
    _GPT2,
    replace(
        _GPT2,
        classes=("GPTBigCodeForCausalLM",),
        attention=_multi_query,
        # The generic backend has no plan to split it.
        feed_forward=FeedForward(is_gated=False, dense=Dense(biased_unless="enable_bias", is_whole=True)),
    ),
    replace(
        _GPT2,
        classes=("OPTForCausalLM",),
        model_types=("opt",),
        attention=_as_wide_as_the_stream,
        biases=everywhere_unless("enable_bias"),
        extra_parameters=_opt_positions,
    ),
    replace(_GPT2, classes=("BloomForCausalLM",), extra_parameters=_embedding_norm),
    replace(
        _GPT2,
        classes=("JAISLMHeadModel",),
        attention=_sloped_and_gated,
        feed_forward=FeedForward(dense=Dense(biased_unless="enable_bias")),
        extra_parameters=nothing,
        last_vllm="0.22",
    ),
    Family(
        classes=("GPTNeoXForCausalLM",),
        attention=full_only,
        feed_forward=_PLAIN,
        biases=everywhere_unless("attention_bias"),
        has_norm_biases=True,
        rotary=rotating(0.25),
    ),
    Family(
        classes=("GPTJForCausalLM",),
        attention=full_only,
        feed_forward=_PLAIN,
        norms_per_layer=1,
        has_norm_biases=True,
        has_head_bias=True,
    ),
    Family(
        classes=("Starcoder2ForCausalLM",),
        attention=windowed_as_stated,
        feed_forward=FeedForward(is_gated=False, dense=Dense(biased_unless="use_bias")),
        biases=everywhere_unless("use_bias"),
        has_norm_biases=True,
        ties_embeddings=True,
    ),
)
