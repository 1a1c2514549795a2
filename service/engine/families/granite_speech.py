"""Granite behind a conformer for speech, whose output learnt queries read.

Sources:
    vLLM 0.33 `model_executor/models/granite_speech.py`, `granite_speech_plus.py`; the adapter for speech that some
    checkpoints bring is loaded as any adapter, and is none of these bytes.
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.family import Family
from service.engine.families.parts.qformer import query_transformer
from service.engine.families.parts.wrappers import named_inside
from service.engine.layers import Encoder


def _tower(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return the conformer, of which networks and the letters' head are split, the queries and one projection."""
    sound, queries = (ConfigReader(outer.mapping(f"{name}_config") or {}) for name in ("encoder", "projector"))
    width, letters = queries.positive("hidden_size", default=768), sound.positive("output_dim", default=42)
    learnt = outer.positive("window_size", default=15) // outer.positive("downsample_rate", default=5) * width
    projection = (width + 1) * text.positive("hidden_size")
    conformer = _conformer(sound, letters)
    return replace(
        conformer,
        whole_parameters=conformer.whole_parameters + learnt + query_transformer(queries) + projection,
        intermediate_size=letters,
    )


def _conformer(sound: ConfigReader, letters: int) -> Encoder:
    """Return the conformer by itself: a layer has two networks, attention with distances, a convolution, a norm."""
    width, depth = sound.positive("hidden_dim", default=1024), sound.positive("num_layers", default=10)
    inner = sound.positive("feedforward_mult", default=4) * width
    head = sound.positive("dim_head", default=128)
    keys = head * sound.positive("num_heads", default=8)
    distances = (2 * sound.positive("max_pos_emb", default=512) + 1) * head
    attention = 2 * width + 4 * width * keys + width + distances
    channels = sound.positive("conv_expansion_factor", default=2) * width
    kernel = sound.positive("conv_kernel_size", default=15)
    convolution = 2 * width + (width + 1) * 2 * channels + kernel * channels + 2 * channels + (channels + 1) * width
    networks = 2 * (2 * width + width)  # norm, and the bias of what comes out
    around = (sound.positive("input_dim", default=160) + 1) * width + width
    return Encoder(
        split_parameters=depth * 2 * (2 * width * inner + inner) + 2 * width * letters + letters,
        whole_parameters=depth * (attention + convolution + networks + 2 * width) + around,
    )


FAMILIES: Final = (
    Family(
        classes=("GraniteSpeechForConditionalGeneration", "GraniteSpeechPlusForConditionalGeneration"),
        wraps=named_inside,
        tower=_tower,
    ),
)
