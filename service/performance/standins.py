"""Models whose kernels were measured, nearest to one whose were not: its times are theirs, in proportion.

    time(model) = time(stand-in) x roofline(model) / roofline(stand-in)       at each knot

A stand-in has the same layers but for what nobody measured: experts of other sizes, a window, heads of another width.
What an estimate gets wrong about kernels it gets wrong for both alike, and leaves the ratio.

Source:
    As `siblings`: G. X. Yu et al., Habitat (USENIX ATC 2021), section 3.3, there from GPU to GPU.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from json import dumps
from math import log
from typing import Final

from service.engine.derived import derived
from service.engine.facts import ModelFacts
from service.engine.families import parse_architecture
from service.engine.inputs import KvCacheDtype
from service.engine.layers import Architecture, AttentionShape, DeltaShape
from service.performance.measured_experts import nearest
from service.performance.restated import Config, Shapes, classes, config_of, shapes_of

STAND_IN: Final = "{refusal}; times with {told}, as the roofline of one is to that of the other"
# Experts that were measured (of Qwen3-30B, Qwen3-235B, Qwen3-Coder-480B and MiniMax-M2; on H200, B200, L40S and A100),
# carried over from the nearest others: 0.05 off at the median, nine in ten within 0.15; the roofline 0.13 and 0.29.
STAND_IN_ERROR: Final = 0.15
# Caches in fp8 that were measured (six models in two formats; on H100, H200, B200 and L40S, of three engines), carried
# over from those in 16 bits: 0.03 off at the median, nine in ten within 0.10; the roofline 0.13 and 0.20.
CACHE_ERROR: Final = 0.1
WHOLE_CACHE: Final[KvCacheDtype] = "bf16"
MEASURED_WIDTHS: Final = (64, 128)  # of heads, on every GPU and with every format of the cache
MEASURED_KEY_VALUES: Final = (1, 2, 4, 8)  # heads with keys, beside as many as there are queries
# Latents of DeepSeek-V3 (its config.json), under which all tables of them are kept.
MEASURED_LATENTS: Final = {
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "q_lora_rank": 1_536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}
FEWEST_LATENT_HEADS: Final = 64
MOST_STAND_INS: Final = 4
NEAREST: Final = 3  # experts that are asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """A model like another one, and what of it differs."""

    model: ModelFacts
    told: str


@derived(1)
def stand_ins(model: ModelFacts) -> tuple[StandIn, ...]:
    """Return models whose kernels may have been measured in place of a model's, the nearest first; none of some."""
    architecture = model.architecture
    shapes = shapes_of(architecture)
    if shapes is None:
        told = _with_measured_latents(architecture)
    else:
        configs = ((config_of(architecture, changed), told) for changed, told in _changed(shapes))
        told = ((config, told) for config, told in configs if config is not None)
    return tuple(StandIn(model=_of(model, config), told=told) for config, told in islice(told, MOST_STAND_INS))


def _of(model: ModelFacts, config: Config) -> ModelFacts:
    return replace(model, architecture=parse_architecture(config), config_json=dumps(config), weight_bytes=None)


def _changed(shapes: Shapes) -> Iterator[tuple[Shapes, str]]:
    """Yield sizes near a model's, those that differ in least first, with how they differ."""
    attentions = list(_attentions(shapes))
    if not shapes.has_experts:
        yield from attentions
        return
    experts = nearest(shapes.hidden_size, shapes.experts)
    others = [each for each in experts if not each.are_those_of(shapes)]  # its own were asked for before
    for each in others[:NEAREST]:
        yield each.within(shapes), each.told
    for changed, told in attentions:
        yield experts[0].within(changed), told if experts[0].are_those_of(shapes) else f"{experts[0].told} and {told}"


def _with_measured_latents(architecture: Architecture) -> Iterator[tuple[Config, str]]:
    """Yield as many layers of the latents that were measured, with the nearest experts, where all layers have such.

    Fewer heads than half of theirs leave other kernels the most of the time, and are not told by them.
    """
    kinds = {tuple(need.kind for mixer in layer.mixers for need in mixer.kernel_needs) for layer in architecture.layers}
    shapes = [layer.mlp.shape for layer in architecture.layers]
    experts = next((shape for shape in reversed(shapes) if shape is not None and shape.num_experts), None)
    heads = min(mixer.spread.queries for mixer in architecture.mixers)
    if kinds != {("latent",)} or experts is None or None in shapes or heads < FEWEST_LATENT_HEADS:
        return
    dense = [shape.columns for shape in shapes if shape is not None and not shape.num_experts]
    for each in nearest(architecture.hidden_size, experts)[:NEAREST]:
        yield (
            {
                **classes()["latent"],
                **MEASURED_LATENTS,
                "hidden_size": each.hidden_size,
                "vocab_size": architecture.vocab_size,
                "max_position_embeddings": architecture.max_position_embeddings,
                "num_hidden_layers": len(shapes),
                "first_k_dense_replace": len(dense),
                "intermediate_size": dense[0] if dense else each.expert_columns,
                "n_routed_experts": each.num_experts,
                "num_experts_per_tok": each.num_experts_per_tok,
                "moe_intermediate_size": each.expert_columns,
                "n_shared_experts": max(round(experts.columns / each.expert_columns), 1),
            },
            f"{MEASURED_LATENTS['num_attention_heads']} heads over latents, and {each.told}",
        )


def _attentions(shapes: Shapes) -> Iterator[tuple[Shapes, str]]:
    """Yield the same without windows, and with the heads that were measured most."""
    full = replace(shapes.full, window=0)
    usual = replace(full, head_dim=_usual_width(full), key_value_heads=_usual_key_values(full))
    if shapes.windowed is not None:
        yield _attending(shapes, full), "no window"
    if usual != full:
        heads = f"{usual.query_heads} heads of {usual.head_dim} elements, {usual.key_value_heads} of them with keys"
        yield _attending(shapes, usual), heads if shapes.windowed is None else f"{heads}, and no window"


def _usual_width(heads: AttentionShape) -> int:
    return min(MEASURED_WIDTHS, key=lambda width: abs(log(width / heads.head_dim)))


def _usual_key_values(heads: AttentionShape) -> int:
    """Return as many heads with keys as there are, where so many were measured."""
    kept = heads.key_value_heads
    return kept if kept in MEASURED_KEY_VALUES or kept == heads.query_heads else min(max(MEASURED_KEY_VALUES), kept)


def _attending(shapes: Shapes, full: AttentionShape) -> Shapes:
    """Return the same sizes with all layers attending to everything, by such heads."""
    mixers = [mixer if isinstance(mixer, DeltaShape) else full for mixer in shapes.mixers]
    return replace(shapes, mixers=mixers, full=full, windowed=None)
