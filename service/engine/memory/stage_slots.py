"""What one slot of SGLang's pools takes on each pipeline stage: all stages have the tokens of the scarcest.

    tokens = floor((rest - capped x window bytes) / (full bytes + s x window bytes))

Source:
    SGLang 0.5.23 `model_executor/pool_configurator.py`, `mem_cache/kv_cache_configurator.py` (`ReduceOp.MIN`;
    `max_stage_mamba_layers`: states are those of the stage that has the most).
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from service.engine.arithmetic import ceil_div
from service.engine.derived import derived
from service.engine.inputs import EngineSettings, Layout, StageRule, StateDtype
from service.engine.layers import Architecture
from service.engine.memory.cache_shape import CacheAsk, CacheShape, cache_shape
from service.engine.memory.drafts import draft_of
from service.engine.memory.stages import pipeline_stages

# Of states' matrices, where neither a flag nor the config (`mamba_ssm_dtype`) names one: `configs/mamba_utils.py`
# (`mamba2_state_dtype`). Convolutions stay in bf16.
STATE_DTYPE: Final[StateDtype] = "float32"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSlots:
    """The bytes of one rank of a stage."""

    full_bytes: int  # of one token in layers that keep every token
    window_bytes: int  # of one slot of the windowed layers, where they have a pool of their own
    window: int  # [tokens]
    state_bytes: int  # of one request in recurrent layers

    def tokens(self, left_bytes: int, capped: int, ratio: Fraction | int) -> int:
        """Return how many tokens fit beside the states. [tokens].

        >>> stage = StageSlots(full_bytes=100, window_bytes=50, window=128, state_bytes=0)
        >>> stage.tokens(14_000, 0, Fraction(8, 10)), stage.tokens(14_000, 80, 0)
        (100, 100)
        """
        per_token = self.full_bytes + ratio * self.window_bytes
        return int(max(left_bytes - capped * self.window_bytes, 0) / per_token) if per_token else 0


def layers_shape(architecture: Architecture, layout: Layout, settings: EngineSettings) -> CacheShape:
    """Return the layers' sizes: each keeps a cache, even where it reads another's.

    Convolutions keep no inputs of drafted tokens in the state itself. Of drafts by the checkpoint itself only those
    count whose number the config states where SGLang looks for it, since 0.5.20 ("a path-less MTP deployment's token
    budget does not depend on the draft-mode rewrite").

    Sources:
        SGLang 0.5.20 to 0.5.23 `model_executor/model_runner_components/spec_aux_hidden_state.py`; 0.5.23
        `model_executor/model_runner_components/layer_setup.py`.
    """
    draft = draft_of(architecture, settings)
    if draft is not None and settings.counts_stated_drafts and not draft.states_count:
        draft = None  # it has a cache beside the pool
    ask = CacheAsk(
        is_checkpoints_dtype=settings.is_checkpoints_cache_dtype,
        draft=draft,
        matrix_dtype=settings.mamba_ssm_cache_dtype,
        unnamed_matrix_dtype=STATE_DTYPE,
        stage_rule=settings.stage_rule,
    )
    return cache_shape(_with_own_caches(architecture), layout, settings.kv_cache_dtype, None, ask=ask)


@derived(1)
def _with_own_caches(architecture: Architecture) -> Architecture:
    return architecture.with_own_caches()


def stage_slots(architecture: Architecture, layout: Layout, settings: EngineSettings) -> tuple[StageSlots, ...]:
    """Return what each pipeline stage takes; they draft nothing."""
    stages = layout.pipeline_parallel_size
    if stages == 1:
        return (_slots(architecture, layout, settings),)
    alone = replace(layout, pipeline_parallel_size=1)
    cut = tuple(_slots(stage, alone, settings) for stage in _cut(architecture, stages, settings.stage_rule))
    if not architecture.pools_all_in_sglang:
        return cut
    state_bytes = max(stage.state_bytes for stage in cut)
    return (replace(_slots(architecture, alone, settings), state_bytes=state_bytes),)


@derived(16)
def _cut(architecture: Architecture, stages: int, stage_rule: StageRule) -> tuple[Architecture, ...]:
    bounds = pipeline_stages(len(architecture.layers), stages, stage_rule)
    return tuple(replace(architecture, layers=architecture.layers[start:end]) for start, end in bounds)


def _slots(architecture: Architecture, layout: Layout, settings: EngineSettings) -> StageSlots:
    groups = layers_shape(architecture, layout, settings).groups
    # Rings of an indexer's raw keys lie beside the pools, a few KiB for each request that may run.
    specs = [spec for group in groups for spec in group.specs if spec.kind != "circular_buffer"]
    windows = [spec for spec in specs if spec.window] if architecture.has_window_pool else []
    kept = sum(ceil_div(spec.token_bytes, spec.context_ranks) for spec in specs)
    return StageSlots(
        full_bytes=kept - sum(spec.token_bytes for spec in windows),
        window_bytes=sum(spec.token_bytes for spec in windows),
        window=max((spec.window for spec in windows), default=0),
        state_bytes=sum(spec.state_bytes for spec in specs),
    )
