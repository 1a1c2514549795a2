"""Loads the engine-rules table and picks the row that speaks for a version."""

from functools import lru_cache
from importlib import resources
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field

from service.engine.errors import InvalidQuestionError
from service.engine.inputs import EngineName
from service.engine.rules import BatchDefaults, EngineRules, GraphAccounting, MemoryShare, gib

KIB = 1024
Amount = Annotated[float, Field(ge=0)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Tier(_Entry):
    at_least_memory_gib: Amount
    except_names: tuple[str, ...]
    max_num_batched_tokens: Annotated[int, Field(gt=0)]
    max_num_seqs: Annotated[int, Field(gt=0)]


class _Measured(_Entry):
    sampler_bytes_per_logit: Amount
    hidden_state_copies: Amount
    graph_base_gib: Amount
    graph_kib_per_dense_layer_and_size: Amount
    graph_kib_per_expert_layer_and_size: Amount
    non_torch_base_gib: Amount
    non_torch_with_peers_gib: Amount


class _Rules(_Entry):
    engine: EngineName
    first_version: str
    rules_version: str
    default_gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)]
    memory_share: MemoryShare
    graph_accounting: GraphAccounting
    batch_defaults: tuple[_Tier, ...]
    measured: _Measured
    source: str


@lru_cache(maxsize=1)
def all_rules() -> tuple[EngineRules, ...]:
    """Return every row, newest version of each engine first."""
    text = resources.files("service.catalog").joinpath("data/engine_rules.yaml").read_text(encoding="utf-8")
    document = yaml.safe_load(text)
    urls = {key: str(source["url"]) for key, source in document["sources"].items()}
    return tuple(_converted(_Rules.model_validate(entry), urls) for entry in document["rules"])


def _converted(entry: _Rules, urls: dict[str, str]) -> EngineRules:
    measured = entry.measured
    return EngineRules(
        engine=entry.engine,
        first_version=entry.first_version,
        rules_version=entry.rules_version,
        default_gpu_memory_utilization=entry.default_gpu_memory_utilization,
        memory_share=entry.memory_share,
        graph_accounting=entry.graph_accounting,
        batch_defaults=tuple(
            BatchDefaults(
                at_least_memory_bytes=gib(tier.at_least_memory_gib),
                except_names=tier.except_names,
                max_num_batched_tokens=tier.max_num_batched_tokens,
                max_num_seqs=tier.max_num_seqs,
            )
            for tier in entry.batch_defaults
        ),
        sampler_bytes_per_logit=measured.sampler_bytes_per_logit,
        hidden_state_copies=measured.hidden_state_copies,
        graph_base_bytes=gib(measured.graph_base_gib),
        graph_bytes_per_dense_layer_and_size=measured.graph_kib_per_dense_layer_and_size * KIB,
        graph_bytes_per_expert_layer_and_size=measured.graph_kib_per_expert_layer_and_size * KIB,
        non_torch_base_bytes=gib(measured.non_torch_base_gib),
        non_torch_bytes_with_peers=gib(measured.non_torch_with_peers_gib),
        source=urls[entry.source],
    )


def rules_for(engine: EngineName, engine_version: str | None = None) -> EngineRules:
    """Return the row that speaks for an engine version; the newest without one.

    Raises:
        InvalidQuestionError: the version is older than every row, or not a version.
    """
    rows = [row for row in all_rules() if row.engine == engine]
    if engine_version is None:
        return rows[0]
    asked = _version(engine_version)
    for row in rows:
        if asked is not None and asked >= (_version(row.first_version) or ()):
            return row
    raise InvalidQuestionError(
        f"there are no rules for {engine} {engine_version[:40]}",
        field="engine_version",
        accepted=f"{rows[-1].first_version} or newer, such as 0.33.0",
    )


def _version(text: str) -> tuple[int, ...] | None:
    """Return the leading numbers of a version, or None when it starts with something else."""
    numbers: list[int] = []
    for part in text.removeprefix("v").split(".")[:3]:
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits or len(digits) > 6:
            break
        numbers.append(int(digits))
    return tuple(numbers) or None
