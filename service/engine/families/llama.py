"""Llama, and the many models that read their config as it does.

Sources:
    vLLM 0.33 `model_executor/models/`: llama.py, solar.py, apertus.py; the others run through the engine's generic
    backend, `model_executor/models/transformers`.
"""

from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import windowed_as_stated
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.norms import on_heads
from service.engine.families.parts.sizes import num_hidden_layers

XIELU_PARAMETERS: Final = 2  # a slope above zero and one below
EXAMPLE_CLASS: Final = "LlamaForCausalLM"


def _activation_slopes(reader: ConfigReader) -> int:
    """Return what Apertus' activation learns in each layer."""
    return XIELU_PARAMETERS * num_hidden_layers(reader)


FAMILIES: Final = (
    Family(
        classes=(
            "LlamaForCausalLM",
            "LLaMAForCausalLM",
            "IQuestCoderForCausalLM",
            "HeliumForCausalLM",
            "SolarForCausalLM",
            "CwmForCausalLM",
        ),
        model_types=("llama",),
        attention=windowed_as_stated,
    ),
    Family(classes=("XverseForCausalLM",), attention=windowed_as_stated, last_vllm="0.23"),
    Family(classes=("AquilaModel", "AquilaForCausalLM"), attention=windowed_as_stated, last_vllm="0.24"),
    Family(
        classes=("SmolLM3ForCausalLM",),
        model_types=("smollm3",),
        attention=windowed_as_stated,
    ),
    # Two matrices, no gate.
    Family(classes=("ArceeForCausalLM",), attention=windowed_as_stated, feed_forward=FeedForward(is_gated=False)),
    Family(
        classes=("ApertusForCausalLM",),
        attention=windowed_as_stated,
        feed_forward=FeedForward(is_gated=False),
        head_norms=on_heads,
        extra_parameters=_activation_slopes,
    ),
    Family(
        classes=("Jais2ForCausalLM",),
        attention=windowed_as_stated,
        feed_forward=FeedForward(is_gated=False),
        has_norm_biases=True,
    ),
    Family(
        classes=("Kolibri1ForCausalLM",),
        attention=windowed_as_stated,
        head_norms=on_heads,
        norms_per_layer=4,
    ),
    Family(
        classes=("MellumForCausalLM",),
        attention=windowed_as_stated,
        head_norms=on_heads,
        has_window_pool=True,
    ),
)
