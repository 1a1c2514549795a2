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
from service.engine.layers import AttentionShape, DeltaShape
from service.performance.measured_experts import nearest
from service.performance.restated import Config, Shapes, config_of, shapes_of

STAND_IN: Final = "{refusal}; times with {told}, as the roofline of one is to that of the other"
# Experts that were measured (of Qwen3-30B, Qwen3-235B, Qwen3-Coder-480B and MiniMax-M2; on H200, B200, L40S and A100),
# carried over from the nearest others: 0.05 off at the median, nine in ten within 0.15; the roofline 0.13 and 0.29.
STAND_IN_ERROR: Final = 0.15
MEASURED_WIDTHS: Final = (64, 128)  # of heads, on every GPU and with every format of the cache
MEASURED_KEY_VALUES: Final = (1, 2, 4, 8)  # heads with keys, beside as many as there are queries
MOST_STAND_INS: Final = 4
NEAREST: Final = 3  # experts that are asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """A model like another one, and what of it differs."""

    model: ModelFacts
    told: str


@derived(1)
def stand_ins(model: ModelFacts) -> tuple[StandIn, ...]:
    """Return models whose kernels may have been measured in place of a model's, the nearest first; none of most."""
    shapes = shapes_of(model.architecture)
    if shapes is None:
        return ()
    configs = ((config_of(model.architecture, changed), told) for changed, told in _changed(shapes))
    known = ((config, told) for config, told in configs if config is not None)
    return tuple(StandIn(model=_of(model, config), told=told) for config, told in islice(known, MOST_STAND_INS))


def _of(model: ModelFacts, config: Config) -> ModelFacts:
    return replace(model, architecture=parse_architecture(config), config_json=dumps(config), weight_bytes=None)


def _changed(shapes: Shapes) -> Iterator[tuple[Shapes, str]]:
    """Yield sizes near a model's, those that differ in least first, with how they differ."""
    attentions = list(_attentions(shapes))
    if not shapes.has_experts:
        yield from attentions
        return
    experts = nearest(shapes)
    for changed, told in ((shapes, ""), *attentions):
        for each in experts[: NEAREST if not told else 1]:
            named = f"{each.num_experts} experts of {each.expert_columns} columns in {each.hidden_size}"
            yield each.within(changed), " and ".join(filter(None, (named, told)))


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
