"""Loads the engine-rules table and picks the row that speaks for a version."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from functools import lru_cache
from importlib import resources
from typing import Annotated, Any

import yaml
from packaging.version import Version
from pydantic import Field

from service.catalog.engine_rows import Entry, Listed, Tables, UniqueKeys, Values, checked, tables_of
from service.catalog.static_reserves import Amount, Reserve
from service.engine.derived import derived
from service.engine.engines.base import nearest_known
from service.engine.engines.registry import engine_named
from service.engine.engines.rules import (
    BatchDefaults,
    EngineRules,
    GraphAccounting,
    GraphTerms,
    gib,
)
from service.engine.engines.versions import Complete, changed, read_version
from service.engine.errors import InvalidQuestionError
from service.engine.inputs import EngineName

KIB = 1024


class _Tier(Entry):
    at_least_memory_gib: Amount
    only_names: tuple[str, ...] = ("",)
    except_names: tuple[str, ...]
    max_num_batched_tokens: Annotated[int, Field(gt=0)]
    max_num_seqs: Annotated[int, Field(gt=0)]


class Constant(Entry):
    """One measured figure with its evidence."""

    value: Amount
    unit: str
    source: str
    as_of: date
    sample_size: Annotated[int, Field(ge=0)]  # logged start-ups behind it; 0 where the source code states it
    error: Amount | None  # median distance of the sample from the value, in the same unit
    note: str


class _Graphs(Entry):
    """Names of constants: what captured graphs take, or are estimated to."""

    base_gib: str
    kib_per_dense_layer_and_size: str
    kib_per_expert_layer_and_size: str
    kib_per_recurrent_layer_and_size: str
    kib_per_selecting_layer_and_size: str

    def terms(self, known: Mapping[str, Constant]) -> GraphTerms:
        """Return their bytes."""
        return GraphTerms(
            base_bytes=gib(known[self.base_gib].value),
            per_dense_layer_and_size=known[self.kib_per_dense_layer_and_size].value * KIB,
            per_expert_layer_and_size=known[self.kib_per_expert_layer_and_size].value * KIB,
            per_recurrent_layer_and_size=known[self.kib_per_recurrent_layer_and_size].value * KIB,
            per_selecting_layer_and_size=known[self.kib_per_selecting_layer_and_size].value * KIB,
        )


class _Measured(Entry):
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
    non_torch_with_slot_peers_gib: str | None
    fused_reduce_gib: str
    non_torch_unified_gib: str
    margin_gib: str
    source: str


class _Rules(Entry):
    """Everything that holds for a version."""

    default_gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)]
    static_reserve: Reserve | None = None
    graph_accounting: GraphAccounting
    steps_planned_ahead: Annotated[int, Field(ge=0)]
    peak_includes_graphs: bool = False
    states_per_request: Annotated[int, Field(ge=1)] = 5
    batch_defaults: tuple[_Tier, ...]
    measured: _Measured
    source: str
    for_mixtures: dict[str, object] | None = None  # what differs for models with experts or recurrent state


class Source(Entry):
    """Where a rule or a figure is from."""

    title: str
    url: str
    checked_on: date


def _gib_of(known: Mapping[str, Constant], name: str | None) -> int | None:
    return None if name is None else gib(known[name].value)


@lru_cache(maxsize=1)
def document() -> dict[str, Any]:
    """Return the table as written."""
    text = resources.files("service.catalog").joinpath("data/engine_rules.yaml").read_text(encoding="utf-8")
    written: dict[str, Any] = yaml.load(text, Loader=UniqueKeys)  # noqa: S506 - a safe loader, but for repeated names
    return written


@lru_cache(maxsize=1)
def sources() -> dict[str, Source]:
    """Return what the table refers to by name."""
    return {name: checked(Source, entry, name) for name, entry in document()["sources"].items()}


@lru_cache(maxsize=1)
def constants() -> dict[str, Constant]:
    """Return every measured figure of the table by name."""
    known = {name: checked(Constant, entry, name) for name, entry in document()["constants"].items()}
    for name, constant in known.items():
        Listed(sources(), what="source", row=name)[constant.source]
    return known


@lru_cache(maxsize=1)
def tables() -> Tables:
    """Return the versions of every engine."""
    return rules_tables(document()["rules"])


def rules_tables(entries: Iterable[Values]) -> Tables:
    """Return the versions of every engine from rows in any order.

    Raises:
        VersionTableError: a row cannot be used as it stands.
    """
    return tables_of(entries, _rules_of)


@lru_cache(maxsize=1)
def all_rules() -> tuple[EngineRules, ...]:
    """Return every row, newest version of each engine first."""
    return tuple(row.value for table in tables().values() for row in reversed(table.rows))


def _rules_of(engine: EngineName, row: Complete[Values]) -> EngineRules:
    """Return a completed row's rules, with those for models of experts or recurrent state where they differ."""
    entry = checked(_Rules, row.value, row.name)
    rules = _converted(engine, row, entry)
    if entry.for_mixtures is None:
        return rules
    of_mixtures = checked(_Rules, changed(row.value, entry.for_mixtures), row.name)
    return replace(rules, for_mixtures=_converted(engine, row, of_mixtures))


def _converted(engine: EngineName, row: Complete[Values], entry: _Rules) -> EngineRules:
    measured = entry.measured
    known = Listed(constants(), what="constant", row=row.name)
    listed = Listed(sources(), what="source", row=row.name)
    return EngineRules(
        engine=engine,
        first_version=str(row.since),
        rules_version=row.name,
        default_gpu_memory_utilization=entry.default_gpu_memory_utilization,
        static_reserve=None if entry.static_reserve is None else entry.static_reserve.reserve(),
        graph_accounting=entry.graph_accounting,
        steps_planned_ahead=entry.steps_planned_ahead,
        peak_includes_graphs=entry.peak_includes_graphs,
        states_per_request=entry.states_per_request,
        batch_defaults=tuple(
            BatchDefaults(
                at_least_memory_bytes=gib(tier.at_least_memory_gib),
                only_names=tier.only_names,
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
        non_torch_bytes_with_slot_peers=_gib_of(known, measured.non_torch_with_slot_peers_gib),
        fused_reduce_bytes=gib(known[measured.fused_reduce_gib].value),
        non_torch_bytes_unified=gib(known[measured.non_torch_unified_gib].value),
        margin_bytes=gib(known[measured.margin_gib].value),
        source=listed[entry.source].url,
        measured_source=listed[measured.source].url,
        plan=engine_named(engine).plan(row.since),
        rescales_contexts=engine_named(engine).rescales_contexts,
    )


def rules_versions(engine: EngineName) -> tuple[str, ...]:
    """Return the names of an engine's rows, the oldest first."""
    return tuple(row.name for row in tables()[engine].rows)


def rules_for(engine: EngineName, engine_version: str | None = None) -> EngineRules:
    """Return the rules of an engine version; without one those of the row that says it speaks then.

    Raises:
        InvalidQuestionError: the version is older than every row, or not a version.
    """
    return rules_in(tables(), engine, engine_version)


def rules_in(known: Tables, engine: EngineName, engine_version: str | None) -> EngineRules:
    """Return the rules of an engine version in a table.

    Raises:
        InvalidQuestionError: the version is older than every row, or not a version.
    """
    table = known[engine]
    if engine_version is None:
        return table.unstated
    version = read_version(engine_version)
    row = None if version is None else table.at(version)
    if version is None or row is None:
        raise InvalidQuestionError(
            f"there are no rules for {engine} {engine_version[:40]}",
            field="engine_version",
            accepted=f"{table.rows[0].value.first_version} or newer, such as {table.rows[-1].value.first_version}, "
            "which is taken where none is stated",
        )
    return _planned(row, str(version))


@derived(64)
def _planned(row: EngineRules, written: str) -> EngineRules:
    """Return a row, the same object each time, with how that very version plans caches and weights, or who does.

    Kept by how the version is written: 0.33 and 0.33.0 are equal, and an answer names the one that was asked for.
    """
    engine, version = row.serving_engine, Version(written)
    plan, planned_as = engine.plan(version), engine.planned_as(version)
    unread = written if nearest_known(version, row.first_version, engine.newest) == engine.newest else None
    stated: dict[str, Any] = {"plan": plan, "planned_as": planned_as, "unread": unread, "release": written}
    mixtures = row.for_mixtures and replace(row.for_mixtures, **stated)
    return replace(row, **stated, for_mixtures=mixtures)


def version_numbers(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version; none when it starts with something else."""
    version = read_version(text)
    return () if version is None else version.release
