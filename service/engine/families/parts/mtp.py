"""Multi-token prediction modules that a checkpoint brings along, as vLLM builds them.

Sources:
    vLLM 0.33 `config/speculative.py` (`hf_config_override`), `model_executor/models/*_mtp.py`,
    `models/{deepseek_v4,minimax_m3}/nvidia/mtp.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.families.parts.layer_kinds import chooses_tokens, drafts_alike, last, slides
from service.engine.layers import Architecture, DecoderLayer, DenseMlp, DraftHead

Builder = Callable[[ConfigReader, Architecture, int], DraftHead]
STATED_COUNT = "num_nextn_predict_layers"
MAX_MODULES = 16  # published checkpoints have one to three


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """How a family's prediction modules are counted and built."""

    build: Builder  # from the language model's part of the config, the model without modules, and their number
    count_name: str = STATED_COUNT
    default_count: int = 0  # published without a count, where the engine builds one module all the same
    builds_only_the_first: bool = False

    def read(self, reader: ConfigReader, architecture: Architecture) -> DraftHead | None:
        """Return the modules that the engine can load from this checkpoint, or None.

        Raises:
            UnsupportedModelError: more modules than any model has, or layers of an unknown kind.
        """
        stated = reader.integer(self.count_name, default=self.default_count)
        if stated > MAX_MODULES:
            raise unknown_kind(self.count_name, stated, f"0 to {MAX_MODULES}")
        modules = min(stated, 1) if self.builds_only_the_first else stated
        if not modules:
            return None
        states_count = reader.raw(STATED_COUNT) is not None
        return replace(self.build(reader, architecture, modules), states_count=states_count)


def head_of(architecture: Architecture, layer: DecoderLayer, modules: int, first: str = "") -> DraftHead:
    """Return modules of one such layer each; `first` names the first, which otherwise follows the model's own."""
    start = len(architecture.layers)
    prefix, number = ("model.layers", start) if not first else (first, 0)
    return DraftHead(
        body=replace(
            architecture, layers=tuple(replace(layer, index=start + index) for index in range(modules)), encoder=None
        ),
        layer_modules=tuple(f"{prefix}.{number + index}." for index in range(modules)),
        num_modules=modules,
    )


def like_the_last(_reader: ConfigReader, architecture: Architecture, modules: int) -> DraftHead:
    """Return layers like the model's last; of sparse ones like the last that selects tokens itself."""
    return head_of(architecture, last(architecture.layers, chooses_tokens), modules)


def under_mtp(architecture: Architecture, layer: DecoderLayer, modules: int) -> DraftHead:
    """Return layers named `mtp.layers`, behind one projection and three norms whatever their number."""
    head = head_of(architecture, layer, modules, first="mtp.layers")
    return replace(head, num_modules=1, is_projection_split=True)


def last_with_softmax(architecture: Architecture) -> DecoderLayer:
    """Return the model's last layer with softmax attention.

    Raises:
        UnsupportedModelError: no layer has it, so that nothing says what a prediction layer attends with.
    """
    layer = last(architecture.layers, drafts_alike)
    if not drafts_alike(layer):
        raise unknown_kind(
            "layer_types", "no layer with attention", "full_attention in one layer, or no prediction layer"
        )
    return layer


def sliding_dense(reader: ConfigReader, architecture: Architecture) -> DecoderLayer:
    """Return the model's last layer with softmax attention, a sliding one if there is any, with a dense network."""
    sliding = [layer for layer in architecture.layers if slides(layer)]
    layer = sliding[-1] if sliding else last_with_softmax(architecture)
    return replace(layer, mlp=DenseMlp(intermediate_size=reader.positive("intermediate_size")))
