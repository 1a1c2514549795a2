"""A model as a config of a class with the same matrices, for a library that finds kernels by the names of classes.

Most classes that it does not know are made of parts that it has: heads with keys and values of their own, some within
a window, delta nets, dense networks, experts. What they are called, and how their positions are told, takes no time.

Source:
    aiconfigurator-core 0.12 `sdk/utils.py` (what it reads of a config), `sdk/models/` (which kernels it asks for).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from typing import Any, Final, TypeVar

import yaml

from service.engine.derived import derived
from service.engine.layers import Architecture, AttentionShape, DeltaShape, NetworkShape

Config = Mapping[str, Any]
Kind = TypeVar("Kind")
DENSE: Final = NetworkShape()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """What a model's layers are made of, each layer one mixer and one feed-forward part."""

    hidden_size: int
    mixers: Sequence[AttentionShape | DeltaShape]
    networks: Sequence[NetworkShape]
    full: AttentionShape  # of the layers without a window, else of those with one
    windowed: AttentionShape | None
    delta: DeltaShape | None
    experts: NetworkShape  # of the layers that have any
    columns: int  # of the layers without experts

    @property
    def is_uniform(self) -> bool:
        """Return whether all layers are alike, and nothing runs beside experts."""
        return (
            self.windowed is None and len(set(self.networks)) == 1 and not (self.has_experts and self.experts.columns)
        )

    @property
    def has_experts(self) -> bool:
        """Return whether any layer has experts."""
        return self.experts.num_experts > 0


@derived(1)
def restated(architecture: Architecture) -> Config | None:
    """Return a config with the same matrices and the same attention; None where no known class has them."""
    shapes = shapes_of(architecture)
    return None if shapes is None else config_of(architecture, shapes)


def config_of(architecture: Architecture, shapes: Shapes) -> Config | None:
    """Return a config of layers of such sizes in a model's width; None where no known class has them."""
    around = _around(architecture, shapes)
    if shapes.delta is not None:
        return _with_delta_nets(around, shapes, shapes.delta)
    made_of = _uniform(shapes) if shapes.is_uniform else _mixed(shapes)
    return None if made_of is None else {**around, **made_of}


def shapes_of(architecture: Architecture) -> Shapes | None:
    """Return what the layers are made of; None where any of it is unusual, or its kind comes in more than one size."""
    layers = architecture.layers
    mixers = [layer.mixers[0].shape for layer in layers if len(layer.mixers) == 1]
    networks = [layer.mlp.shape for layer in layers]
    known = [shape for shape in mixers if shape is not None]
    known_networks = [shape for shape in networks if shape is not None]
    if len(known) < len(layers) or len(known_networks) < len(layers):
        return None
    attention = [shape for shape in known if isinstance(shape, AttentionShape)]
    full = {shape for shape in attention if not shape.window}
    windowed = {shape for shape in attention if shape.window}
    delta = {shape for shape in known if isinstance(shape, DeltaShape)}
    experts = {shape for shape in known_networks if shape.num_experts}
    columns = {shape.columns for shape in known_networks if not shape.num_experts}
    if not attention or any(len(kinds) > 1 for kinds in (full, windowed, delta, experts, columns)):
        return None
    return Shapes(
        hidden_size=architecture.hidden_size,
        mixers=known,
        networks=known_networks,
        full=_only(full) or _only(windowed) or attention[0],
        windowed=_only(windowed),
        delta=_only(delta),
        experts=_only(experts) or DENSE,
        columns=_only(columns) or 0,
    )


def _only(kinds: Iterable[Kind]) -> Kind | None:
    return next(iter(kinds), None)


def _around(architecture: Architecture, shapes: Shapes) -> Config:
    """Return what every class states."""
    return {
        "hidden_size": shapes.hidden_size,
        "vocab_size": architecture.vocab_size,
        "max_position_embeddings": architecture.max_position_embeddings,
        "num_hidden_layers": len(architecture.layers),
        "num_attention_heads": shapes.full.query_heads,
        "num_key_value_heads": shapes.full.key_value_heads,
        "head_dim": shapes.full.head_dim,
    }


def _uniform(shapes: Shapes) -> Config | None:
    """Return layers that are all alike: full attention before a dense network, or before experts."""
    if shapes.full.has_output_gate:
        return None
    norms = "-with-norms" if shapes.full.has_head_norms else ""
    if not shapes.has_experts:
        return {**classes()["plain" + norms], "intermediate_size": shapes.columns}
    return {**classes()["experts" + norms], "intermediate_size": shapes.experts.expert_columns, **_experts(shapes)}


def _mixed(shapes: Shapes) -> Config | None:
    """Return layers with and without a window, dense ones and those of experts, with what runs beside these."""
    windowed = shapes.windowed or shapes.full
    # A layer with a window may have other heads of queries, and their width is that of all.
    same = replace(shapes.full, window=windowed.window, query_heads=windowed.query_heads)
    if windowed != same or shapes.full.has_output_gate:
        return None
    with_experts = [index for index, shape in enumerate(shapes.networks) if shape.num_experts]
    return {
        **classes()["mixed"],
        "layer_types": ["sliding_attention" if _window(mixer) else "full_attention" for mixer in shapes.mixers],
        "sliding_window": max(windowed.window, 1),
        "attention_other_setting": {
            "attention_type": "sliding_attention",
            "num_attention_heads": windowed.query_heads,
            "head_dim": windowed.head_dim,
        },
        "intermediate_size": shapes.columns or shapes.experts.expert_columns,
        "first_k_dense_replace": len(shapes.networks),
        "moe_layers_enum": ",".join(map(str, with_experts)),
        "moe_num_experts": max(shapes.experts.num_experts, 1),
        "moe_top_k": max(shapes.experts.num_experts_per_tok, 1),
        "moe_intermediate_size": shapes.experts.expert_columns,
        "share_expert_dim": shapes.experts.columns,
    }


def _with_delta_nets(around: Config, shapes: Shapes, delta: DeltaShape) -> Config | None:
    """Return layers of delta nets beside full attention, before networks that are all alike."""
    if shapes.windowed is not None or len(set(shapes.networks)) > 1:
        return None
    text = {
        **around,
        "layer_types": ["linear_attention" if mixer == delta else "full_attention" for mixer in shapes.mixers],
        "linear_num_key_heads": delta.key_heads,
        "linear_num_value_heads": delta.value_heads,
        "linear_key_head_dim": delta.key_head_dim,
        "linear_value_head_dim": delta.value_head_dim,
        "linear_conv_kernel_dim": delta.conv_kernel_size,
        **({"mamba_ssm_dtype": delta.state_dtype} if delta.state_dtype != "auto" else {}),
        "intermediate_size": shapes.columns or shapes.experts.expert_columns,
        "shared_expert_intermediate_size": shapes.experts.columns,
        **_experts(shapes),
    }
    return {**classes()["delta-experts" if shapes.has_experts else "delta"], "text_config": text}


def _experts(shapes: Shapes) -> Config:
    if not shapes.has_experts:
        return {}
    return {
        "num_experts": shapes.experts.num_experts,
        "num_experts_per_tok": shapes.experts.num_experts_per_tok,
        "moe_intermediate_size": shapes.experts.expert_columns,
    }


def _window(mixer: AttentionShape | DeltaShape) -> int:
    return mixer.window if isinstance(mixer, AttentionShape) else 0


@lru_cache(maxsize=1)
def classes() -> Mapping[str, Config]:
    """Return the names of classes by what they are made of."""
    file = resources.files("service.performance").joinpath("data", "restated.yaml")
    classes: Mapping[str, Config] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return classes
