"""From a request body to an engine question: look up, then convert field by field."""

import json
from functools import lru_cache

from service.api.problems import FieldProblem, ProblemError
from service.api.questions import (
    CapacityBody,
    CapacityQuery,
    Pasted,
    Question,
    RecommendBody,
    RecommendQuery,
    SizeBody,
    SizeQuery,
)
from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.arithmetic import ceil_div
from service.engine.facts import Checkpoint, ModelFacts
from service.engine.families import parse_architecture, stated_quantization
from service.engine.fleet.questions import CapacityQuestion, RecommendQuestion, SizeQuestion
from service.engine.formats.quantization import parse_quantization
from service.engine.inputs import Gpu, WeightFormat
from service.engine.time.steps import StepTimers

PASTED_ID = "pasted-config"
PASTED_SOURCE = "model_config of the request"


def size_question(query: SizeQuery | SizeBody, snapshot: Snapshot, timers: StepTimers) -> SizeQuestion:
    """Return the engine's question for `/size`."""
    _check_revision(query, snapshot)
    gpu = snapshot.gpu(query.gpu)
    return SizeQuestion(
        model=_model(query, snapshot),
        gpu=gpu,
        load=query.load(query.input_tokens, query.output_tokens),
        limits=query.limits(),
        layout=query.layout_wish(),
        headroom=query.headroom(),
        settings=query.settings_wish(),
        rules=rules_for(query.engine, query.engine_version),
        offers=snapshot.offers,
        timers=timers,
        disaggregated=query.disaggregated,
    )


def capacity_question(query: CapacityQuery | CapacityBody, snapshot: Snapshot, timers: StepTimers) -> CapacityQuestion:
    """Return the engine's question for `/capacity`."""
    _check_revision(query, snapshot)
    gpu = snapshot.gpu(query.gpu)
    wish = query.layout_wish()
    one_replica = (wish.tensor_parallel_size or 1) * (wish.pipeline_parallel_size or 1) * (wish.data_parallel_size or 1)
    return CapacityQuestion(
        model=_model(query, snapshot),
        gpu=gpu,
        gpu_count=one_replica if query.gpu_count is None else query.gpu_count,
        load=query.load(query.input_tokens or 0, query.output_tokens or 0),
        input_tokens=query.input_tokens,
        output_tokens=query.output_tokens,
        limits=query.limits(),
        layout=wish,
        settings=query.settings_wish(),
        rules=rules_for(query.engine, query.engine_version),
        offers=snapshot.offers,
        timers=timers,
    )


def recommend_question(
    query: RecommendQuery | RecommendBody, snapshot: Snapshot, timers: StepTimers
) -> RecommendQuestion:
    """Return the engine's question for `/recommend`."""
    _check_revision(query, snapshot)
    return RecommendQuestion(
        model=_model(query, snapshot),
        gpus=_gpus(query, snapshot),
        load=query.load(query.input_tokens, query.output_tokens),
        limits=query.limits(),
        headroom=query.headroom(),
        settings=query.settings_wish(),
        layout=query.layout_wish(),
        rules=rules_for(query.engine, query.engine_version),
        offers=snapshot.offers,
        timers=timers,
        weight_formats=tuple(query.weight_formats or ()),
        kv_cache_dtypes=tuple(query.kv_cache_dtypes or ()),
        providers=tuple(it.lower() for it in query.providers or ()),
        regions=tuple(query.regions or ()),
        max_gpus=query.max_gpus,
        max_usd_per_hour=query.max_usd_per_hour,
        objective=query.objective,
        limit=query.limit,
    )


def _gpus(query: RecommendQuery, snapshot: Snapshot) -> tuple[Gpu, ...]:
    """Return the GPUs to consider; without a list, those that somebody rents out."""
    excluded = {snapshot.gpu(name).id for name in query.exclude_gpus or ()}
    if query.gpus:
        asked = [snapshot.gpu(name) for name in query.gpus]
    else:
        rented = {offer.gpu for offer in snapshot.offers}
        asked = [gpu for gpu in snapshot.gpus.values() if gpu.id in rented] or list(snapshot.gpus.values())
    unique = {gpu.id: gpu for gpu in asked if gpu.id not in excluded}
    if not unique:
        detail = "exclude_gpus leaves no GPU to consider"
        problem = FieldProblem(field="exclude_gpus", detail=detail, accepted="a list that leaves one of gpus")
        raise ProblemError(422, "invalid-request", detail, [problem])
    return tuple(unique.values())


def _check_revision(query: Question, snapshot: Snapshot) -> None:
    if query.catalog_revision is not None and query.catalog_revision != snapshot.revision:
        detail = f"the catalog is at revision {snapshot.revision}"
        problem = FieldProblem(field="catalog_revision", detail=detail, accepted=str(snapshot.revision))
        raise ProblemError(409, "other-revision", detail, [problem])


def _model(query: Question, snapshot: Snapshot) -> ModelFacts:
    pasted = query.pasted_config if isinstance(query, Pasted) else None
    if (query.model is None) == (pasted is None):
        detail = (
            "neither model nor model_config was stated" if pasted is None else "model and model_config were both stated"
        )
        accepted = "model (an id from /catalog/models), or model_config (a config.json, POST only)"
        raise ProblemError(
            422, "invalid-request", detail, [FieldProblem(field="model", detail=detail, accepted=accepted)]
        )
    if pasted is not None and isinstance(query, Pasted):
        return pasted_model(pasted, query)
    if isinstance(query, Pasted) and (query.weight_bytes or query.num_parameters):
        detail = "weight_bytes and num_parameters go with a pasted model_config; the catalog knows its own models"
        raise ProblemError(
            422, "invalid-request", detail, [FieldProblem(field="weight_bytes", detail=detail, accepted="model_config")]
        )
    return snapshot.model(query.model or "")


BITS: dict[WeightFormat, int] = {"bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "int4": 4, "mxfp4": 4, "nvfp4": 4}


def _stated_weight_bytes(
    weight_bytes: int | None, num_parameters: int | None, weight_format: WeightFormat
) -> int | None:
    """Return the caller's weights: as stated, or parameters x bits / 8."""
    if weight_bytes is not None or num_parameters is None:
        return weight_bytes
    return ceil_div(num_parameters * BITS[weight_format], 8)


def pasted_model(config: dict[str, object], stated: Pasted) -> ModelFacts:
    """Return what the engine computes with, for a config that is not in the catalog.

    Raises:
        EngineError: the config lacks a field, or has a layer kind without a rule.
    """
    return _parsed(json.dumps(config, sort_keys=True), stated.weight_bytes, stated.num_parameters)


@lru_cache(maxsize=256)
def _parsed(config_json: str, weight_bytes: int | None, num_parameters: int | None) -> ModelFacts:
    """Return the same facts for the same config, so that what is found about a model is found once."""
    config = json.loads(config_json)
    architecture = parse_architecture(config)
    quantization = parse_quantization(stated_quantization(config))
    weight_format = quantization.weight_format or ("fp16" if architecture.dtype == "float16" else "bf16")
    checkpoint = Checkpoint(
        weight_format=weight_format,
        quantization=quantization,
        hf_id=None,
        is_default=True,
        kv_cache_dtype=quantization.kv_cache_dtype,
        source=PASTED_SOURCE,
    )
    return ModelFacts(
        id=PASTED_ID,
        architecture=architecture,
        checkpoints=(checkpoint,),
        source=PASTED_SOURCE,
        config_json=config_json,
        weight_bytes=_stated_weight_bytes(weight_bytes, num_parameters, weight_format),
    )
