"""Multi-token prediction modules that a checkpoint brings along, as vLLM builds them.

Sources:
    vLLM 0.33 `config/speculative.py` (`hf_config_override`), `model_executor/models/*_mtp.py`,
    `models/{deepseek_v4,minimax_m3}/nvidia/mtp.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.layers import (
    Architecture,
    Attention,
    CompressedAttention,
    DecoderLayer,
    DenseMlp,
    DraftHead,
    GroupedQueryAttention,
    LatentAttention,
    MoeMlp,
    NoAttention,
    NoMlp,
)

Layers = Sequence[DecoderLayer]
Builder = Callable[[ConfigReader, Architecture], DraftHead]
MAX_MODULES = 16  # published checkpoints have one to three

COUNT_NAME = "num_nextn_predict_layers"
OTHER_COUNT_NAMES = {"MiniMaxM3Sparse": "num_mtp_modules", "Qwen3_5": "mtp_num_hidden_layers"}
# Published without a count: the engine builds one module all the same.
COUNTED_BY_DEFAULT = ("Qwen3Next", "Qwen3_5", "MiniMaxM3Sparse", "Step3p", "MiMoV2")
NEMOTRON_KINDS = MappingProxyType({"*": "attention", "-": "mlp", "E": "moe"})


def parse_mtp(reader: ConfigReader, architecture: Architecture) -> DraftHead | None:
    """Return the modules that the engine can load from this checkpoint, or None.

    Args:
        reader: the language model's part of the config.
        architecture: the model without them.

    Raises:
        UnsupportedModelError: more modules than any model has, or layers of an unknown kind.
    """
    build = BUILDERS.get(architecture.name)
    if build is None or not _count(reader, architecture):
        return None
    return build(reader, architecture)


def _count(reader: ConfigReader, architecture: Architecture) -> int:
    """Return the modules the engine builds: as stated, but of MiMo-V2's only the first."""
    default = 1 if architecture.name.startswith(COUNTED_BY_DEFAULT) else 0
    named = (count for name, count in OTHER_COUNT_NAMES.items() if architecture.name.startswith(name))
    name = next(named, COUNT_NAME)
    stated = reader.integer(name, default=default)
    if stated > MAX_MODULES:
        raise unknown_kind(name, stated, f"0 to {MAX_MODULES}")
    return min(stated, 1) if architecture.name.startswith("MiMoV2") else stated


def _head(architecture: Architecture, layer: DecoderLayer, modules: int, first: str = "") -> DraftHead:
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


def _like_the_last(reader: ConfigReader, architecture: Architecture) -> DraftHead:
    """Return layers like the model's last; of sparse ones like the last that selects tokens itself."""
    choosing = [it for it in architecture.layers if _has_indexer(it)]
    return _head(architecture, (choosing or architecture.layers)[-1], _count(reader, architecture))


def _has_indexer(layer: DecoderLayer) -> bool:
    return any(isinstance(it, LatentAttention) and it.indexer is not None for it in layer.mixers)


def _minimax_m3(reader: ConfigReader, architecture: Architecture) -> DraftHead:
    return replace(_like_the_last(reader, architecture), layer_modules=_numbered("model.layers", reader, architecture))


def _numbered(prefix: str, reader: ConfigReader, architecture: Architecture) -> tuple[str, ...]:
    return tuple(f"{prefix}.{index}." for index in range(_count(reader, architecture)))


def _ernie(reader: ConfigReader, architecture: Architecture) -> DraftHead:
    """Return dense layers, with two norms around the projection and none behind the layer."""
    dense = DenseMlp(intermediate_size=reader.positive("intermediate_size"), has_bias=False)
    layer = replace(architecture.layers[-1], mlp=dense)
    return replace(_head(architecture, layer, _count(reader, architecture)), num_norms=2)


def _qwen_hybrid(reader: ConfigReader, architecture: Architecture) -> DraftHead:
    """Return layers like the model's last with softmax attention."""
    return _under_mtp(reader, architecture, _last_with_softmax(architecture.layers))


def _exaone(reader: ConfigReader, architecture: Architecture) -> DraftHead:
    """Return layers like the model's first."""
    return _under_mtp(reader, architecture, architecture.layers[0])


def _under_mtp(reader: ConfigReader, architecture: Architecture, layer: DecoderLayer) -> DraftHead:
    """Return layers named `mtp.layers`, behind one projection and three norms whatever their number."""
    modules = _count(reader, architecture)
    head = _head(architecture, layer, modules, first="mtp.layers")
    return replace(head, num_modules=1, is_projection_split=True)


def _last_with_softmax(layers: Layers, *, sliding: bool = False) -> DecoderLayer:
    """Return the last layer with softmax attention; among sliding ones where asked and there are any."""
    found = [it for it in layers if any(isinstance(mixer, GroupedQueryAttention) for mixer in it.mixers)]
    windows = [it for it in found if any(_slides(mixer) for mixer in it.mixers)] if sliding else []
    return (windows or found)[-1]


def _slides(mixer: Attention) -> bool:
    return isinstance(mixer, GroupedQueryAttention) and mixer.sliding_window is not None


def _sliding_dense(reader: ConfigReader, architecture: Architecture) -> DecoderLayer:
    layer = _last_with_softmax(architecture.layers, sliding=True)
    return replace(layer, mlp=DenseMlp(intermediate_size=reader.positive("intermediate_size")))


def _mimo_v2(reader: ConfigReader, architecture: Architecture) -> DraftHead:
    layer = _sliding_dense(reader, architecture)
    head = _head(architecture, layer, _count(reader, architecture), first="model.mtp.layers")
    return replace(head, unquantized=("o_proj",))


def _step(reader: ConfigReader, architecture: Architecture) -> DraftHead:
    """Return sliding layers, by `layer_types` beyond the model's own, each with an output head of its own."""
    kinds = reader.strings("layer_types") or ()
    beyond = kinds[len(architecture.layers) :]
    if any(kind != "sliding_attention" for kind in beyond):
        raise unknown_kind("layer_types", beyond, "sliding_attention for the prediction layers")
    head = _head(architecture, _sliding_dense(reader, architecture), _count(reader, architecture))
    return replace(head, head_vocab_size=architecture.vocab_size)


def _deepseek_v4(reader: ConfigReader, architecture: Architecture) -> DraftHead:
    """Return layers with their window alone; both projections are quantized with the rest."""
    last = architecture.layers[-1]
    windows = tuple(
        replace(it, compress_ratio=1, indexer=None) if isinstance(it, CompressedAttention) else it for it in last.mixers
    )
    mlp = last.mlp
    if isinstance(mlp, MoeMlp) and mlp.expert_scheme == "nvfp4":
        mlp = replace(mlp, expert_scheme="mxfp4")  # checkpoints in NVFP4 leave the modules as they were
    head = _head(architecture, replace(last, mixers=windows, mlp=mlp), _count(reader, architecture))
    return replace(head, projection_module=head.layer_modules[0] + "e_proj", projection_scale_bytes=1)


def _nemotron_h(reader: ConfigReader, architecture: Architecture) -> DraftHead:
    """Return the layers of `mtp_hybrid_override_pattern`, each like the model's last of its kind."""
    stated = reader.strings("mtp_layers_block_type")
    kinds = stated or tuple(
        NEMOTRON_KINDS.get(kind, kind) for kind in reader.text("mtp_hybrid_override_pattern", default="*E")
    )
    modules = _count(reader, architecture)
    start = len(architecture.layers)
    layers = [_nemotron_layer(architecture, kind) for kind in kinds] * modules
    return DraftHead(
        body=replace(
            architecture, layers=tuple(replace(layer, index=start + index) for index, layer in enumerate(layers))
        ),
        layer_modules=tuple(f"mtp.layers.{index}." for index in range(len(layers))),
        num_modules=modules,
        projection_module="mtp.layers.0.eh_proj",
        is_projection_split=True,
    )


def _nemotron_layer(architecture: Architecture, kind: str) -> DecoderLayer:
    if kind == "attention":
        return _last_with_softmax(architecture.layers)
    if kind == "moe":
        without_mixer = [it for it in architecture.layers if it.mixers == (NoAttention(),) and it.mlp != NoMlp()]
        if without_mixer:
            return without_mixer[-1]
    raise unknown_kind("mtp_hybrid_override_pattern", kind, "* (attention) and E (experts)")


BUILDERS: Final[Mapping[str, Builder]] = MappingProxyType(
    {
        "DeepseekV3ForCausalLM": _like_the_last,
        "DeepseekV32ForCausalLM": _like_the_last,
        "DeepseekV4ForCausalLM": _deepseek_v4,
        "GlmMoeDsaForCausalLM": _like_the_last,
        "Glm4MoeForCausalLM": _like_the_last,
        "Glm4MoeLiteForCausalLM": _like_the_last,
        "MiMoForCausalLM": _like_the_last,
        "MiMoV2FlashForCausalLM": _mimo_v2,
        "MiMoV2ForCausalLM": _mimo_v2,
        "Ernie4_5_MoeForCausalLM": _ernie,
        "Qwen3NextForCausalLM": _qwen_hybrid,
        "Qwen3_5ForCausalLM": _qwen_hybrid,
        "Qwen3_5MoeForCausalLM": _qwen_hybrid,
        "Qwen3_5ForConditionalGeneration": _qwen_hybrid,
        "Qwen3_5MoeForConditionalGeneration": _qwen_hybrid,
        "ExaoneMoeForCausalLM": _exaone,
        "ExaoneMoEForCausalLM": _exaone,
        "NemotronHForCausalLM": _nemotron_h,
        "Step3p5ForCausalLM": _step,
        "Step3p7ForConditionalGeneration": _step,
        "MiniMaxM3SparseForConditionalGeneration": _minimax_m3,
    }
)
