"""Loads the engine-rules table and picks the row that speaks for a version."""

from dataclasses import replace
from datetime import date
from functools import lru_cache
from importlib import resources
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field

from service.engine.engines.plans import Version, plan_rules
from service.engine.engines.rules import (
    BatchDefaults,
    EngineRules,
    GraphAccounting,
    GraphTerms,
    MemoryShare,
    UtilizationReserve,
    gib,
)
from service.engine.errors import InvalidQuestionError
from service.engine.inputs import EngineName

KIB = 1024
Amount = Annotated[float, Field(ge=0)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Tier(_Entry):
    at_least_memory_gib: Amount
    except_names: tuple[str, ...]
    max_num_batched_tokens: Annotated[int, Field(gt=0)]
    max_num_seqs: Annotated[int, Field(gt=0)]


class _Reserve(_Entry):
    at_least_memory_gib: Amount
    reserved_mib: Amount


class Constant(_Entry):
    """One measured figure with its evidence."""

    value: Amount
    unit: str
    source: str
    as_of: date
    sample_size: Annotated[int, Field(ge=0)]  # logged start-ups behind it; 0 where the source code states it
    error: Amount | None  # median distance of the sample from the value, in the same unit
    note: str


class _Graphs(_Entry):
    """Names of constants: what captured graphs take, or are estimated to."""

    base_gib: str
    kib_per_dense_layer_and_size: str
    kib_per_expert_layer_and_size: str
    kib_per_recurrent_layer_and_size: str
    kib_per_selecting_layer_and_size: str

    def terms(self, known: dict[str, Constant]) -> GraphTerms:
        """Return their bytes."""
        return GraphTerms(
            base_bytes=gib(known[self.base_gib].value),
            per_dense_layer_and_size=known[self.kib_per_dense_layer_and_size].value * KIB,
            per_expert_layer_and_size=known[self.kib_per_expert_layer_and_size].value * KIB,
            per_recurrent_layer_and_size=known[self.kib_per_recurrent_layer_and_size].value * KIB,
            per_selecting_layer_and_size=known[self.kib_per_selecting_layer_and_size].value * KIB,
        )


class _Measured(_Entry):
    """Names of constants, and facts of the version that are not numbers."""

    sampler_bytes_per_logit: str
    sampler_state_bytes_per_logit: str
    keeps_workspaces: bool
    bounds_encoder_cache: bool = True
    long_sparse_workspace_factor: Annotated[int, Field(ge=1)]
    hidden_state_copies: str
    activation_base_gib: str
    graphs_on_hopper: _Graphs
    graphs_elsewhere: _Graphs
    context_gib: dict[str, str]  # by compute capability, its major number, or `other`
    connected_context_gib: str | None
    non_torch_with_peers_gib: str
    fused_reduce_gib: str
    non_torch_unified_gib: str
    margin_gib: str
    source: str


class _Rules(_Entry):
    engine: EngineName
    first_version: str
    only_experts_or_states: bool = False
    rules_version: str
    default_gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)]
    utilization_reserves: tuple[_Reserve, ...] = ()
    memory_share: MemoryShare
    graph_accounting: GraphAccounting
    steps_planned_ahead: Annotated[int, Field(ge=0)]
    peak_includes_graphs: bool = False
    batch_defaults: tuple[_Tier, ...]
    measured: _Measured
    source: str


@lru_cache(maxsize=1)
def _document() -> dict[str, dict[str, object]]:
    text = resources.files("service.catalog").joinpath("data/engine_rules.yaml").read_text(encoding="utf-8")
    document: dict[str, dict[str, object]] = yaml.safe_load(text)
    return document


@lru_cache(maxsize=1)
def constants() -> dict[str, Constant]:
    """Return every measured figure of the table by name."""
    return {name: Constant.model_validate(entry) for name, entry in _document()["constants"].items()}


@lru_cache(maxsize=1)
def all_rules() -> tuple[EngineRules, ...]:
    """Return every row, newest version of each engine first."""
    sources = {name: _Source.model_validate(entry) for name, entry in _document()["sources"].items()}
    if unknown := {it.source for it in constants().values()} - set(sources):
        raise ValueError(f"engine_rules.yaml names sources it does not list: {sorted(unknown)}")
    experts = {
        (entry.engine, entry.first_version): _converted(entry, sources)
        for entry in _entries()
        if entry.only_experts_or_states
    }
    return tuple(
        replace(_converted(entry, sources), for_mixtures=experts.get((entry.engine, entry.first_version)))
        for entry in _entries()
        if not entry.only_experts_or_states
    )


@lru_cache(maxsize=1)
def _entries() -> tuple[_Rules, ...]:
    return tuple(_Rules.model_validate(entry) for entry in _document()["rules"])


@lru_cache(maxsize=8)
def _unstated(engine: EngineName) -> EngineRules:
    """Return the newest row of an engine."""
    newest = next(row for row in all_rules() if row.engine == engine)
    return replace(newest, is_version_stated=False)


class _Source(_Entry):
    title: str
    url: str
    checked_on: date


def _gib_of(known: dict[str, Constant], name: str | None) -> int | None:
    return None if name is None else gib(known[name].value)


def _converted(entry: _Rules, sources: dict[str, _Source]) -> EngineRules:
    measured, known = entry.measured, constants()
    return EngineRules(
        engine=entry.engine,
        first_version=entry.first_version,
        rules_version=entry.rules_version,
        default_gpu_memory_utilization=entry.default_gpu_memory_utilization,
        utilization_reserves=tuple(
            UtilizationReserve(
                at_least_memory_bytes=gib(tier.at_least_memory_gib), reserved_bytes=gib(tier.reserved_mib / KIB)
            )
            for tier in entry.utilization_reserves
        ),
        memory_share=entry.memory_share,
        graph_accounting=entry.graph_accounting,
        steps_planned_ahead=entry.steps_planned_ahead,
        peak_includes_graphs=entry.peak_includes_graphs,
        batch_defaults=tuple(
            BatchDefaults(
                at_least_memory_bytes=gib(tier.at_least_memory_gib),
                except_names=tier.except_names,
                max_num_batched_tokens=tier.max_num_batched_tokens,
                max_num_seqs=tier.max_num_seqs,
            )
            for tier in entry.batch_defaults
        ),
        sampler_bytes_per_logit=known[measured.sampler_bytes_per_logit].value,
        sampler_state_bytes_per_logit=known[measured.sampler_state_bytes_per_logit].value,
        keeps_workspaces=measured.keeps_workspaces,
        bounds_encoder_cache=measured.bounds_encoder_cache,
        long_sparse_workspace_factor=measured.long_sparse_workspace_factor,
        hidden_state_copies=known[measured.hidden_state_copies].value,
        activation_base_bytes=gib(known[measured.activation_base_gib].value),
        graphs_on_hopper=measured.graphs_on_hopper.terms(known),
        graphs_elsewhere=measured.graphs_elsewhere.terms(known),
        context_bytes={name: gib(known[constant].value) for name, constant in measured.context_gib.items()},
        connected_context_bytes=_gib_of(known, measured.connected_context_gib),
        non_torch_bytes_with_peers=gib(known[measured.non_torch_with_peers_gib].value),
        fused_reduce_bytes=gib(known[measured.fused_reduce_gib].value),
        non_torch_bytes_unified=gib(known[measured.non_torch_unified_gib].value),
        margin_bytes=gib(known[measured.margin_gib].value),
        source=sources[entry.source].url,
        measured_source=sources[measured.source].url,
    )


def rules_for(engine: EngineName, engine_version: str | None = None) -> EngineRules:
    """Return the row that speaks for an engine version; without one the newest.

    Raises:
        InvalidQuestionError: the version is older than every row, or not a version.
    """
    if engine_version is None:
        return _unstated(engine)
    row = _at(engine, version_numbers(engine_version))
    if row is not None:
        return row
    rows = [row for row in all_rules() if row.engine == engine]
    raise InvalidQuestionError(
        f"there are no rules for {engine} {engine_version[:40]}",
        field="engine_version",
        accepted=f"{rows[-1].first_version} or newer, such as {rows[0].first_version}",
    )


@lru_cache(maxsize=256)
def _at(engine: EngineName, version: Version) -> EngineRules | None:
    """Return the row that speaks for a version, with how that very version plans; None where none does."""
    for row in all_rules():
        if row.engine == engine and version and version >= version_numbers(row.first_version):
            plan = plan_rules(engine, version)
            mixtures = None if row.for_mixtures is None else replace(row.for_mixtures, plan=plan)
            return replace(row, plan=plan, for_mixtures=mixtures)
    return None


def version_numbers(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version; none when it starts with something else."""
    numbers: list[int] = []
    for part in text.removeprefix("v").split(".")[:3]:
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits or len(digits) > 6:
            break
        numbers.append(int(digits))
    return tuple(numbers)
