"""`/size`: this model, this load, this GPU type; how many?"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from service.engine.answers.alike import may_be_alike
from service.engine.answers.other_levers import Other, size_beside, with_others
from service.engine.answers.results import Sizing
from service.engine.errors import EngineError
from service.engine.fleet.checkpoints import own_checkpoint
from service.engine.fleet.questions import SizeQuestion
from service.questions.alike import Looked
from service.questions.alternatives import leaner_models, other_gpus, smaller_models
from service.questions.answers import Answer, Row, flat
from service.questions.asked import Question
from service.questions.examples import LLAMA_CONFIG, MEMORY_PER_GPU
from service.questions.lines import (
    best_lever,
    checkpoint_of,
    confident_columns,
    counted,
    deployment_lines,
    layout_of,
    shape_of,
)
from service.questions.one_gpu import OfOneGpu
from service.questions.parts.model import PastedModel
from service.questions.parts.part import contradiction
from service.questions.refusals import RefusalError
from service.questions.sources import Sources
from service.questions.wide import wider

# Numbers of an answer that are the same whichever of equal deployments is taken.
OF_ANY_TIME: Final = frozenset({
    "gpus", "cost.usd_per_hour", "weights.weight_bytes", "weights.num_parameters", "weights.num_active_parameters",
    "kv_cache.bytes_per_token",
})  # fmt: skip
OF_LEVERS: Final = ("levers", "would_fit")  # where numbers of an answer begin that levers change
OF_LOAD: Final = frozenset({"concurrent_requests", "input_tokens", "output_tokens"})


class SizeAnswer(Answer[Sizing]):
    """How many GPUs, and why."""

    def rows(self) -> Sequence[Row]:
        """Return the one sizing, flat."""
        told = {"checkpoint": checkpoint_of(self.result.assumptions), "best_lever": best_lever(self.result)}
        return [dict(flat(self.document)) | told | confident_columns(self.result)]

    def gauges(self) -> Iterator[tuple[str, float]]:
        """Yield every number, and the GPUs at each confidence."""
        yield from super().gauges()
        yield from ((name, float(gpus)) for name, gpus in confident_columns(self.result).items())

    def lines(self) -> Sequence[str]:
        """Return the deployment, with its prefill replicas where they have GPUs of their own."""
        shape, pools = shape_of(self.result), self.result.pools
        if pools is not None:
            prefill = f"{counted(pools.prefill_replicas, 'prefill replica')} of {layout_of(pools.prefill_layout)}"
            shape = f"{prefill}, {shape} for decode"
        beside = [f"prefill: {shlex.join(pools.prefill_engine_args)}"] if pools is not None else []
        return [*deployment_lines(self.result, shape), *beside]


class SizeQuery(OfOneGpu):
    """This model, this load, this GPU type: how many?"""

    disaggregated: bool = Field(
        default=False,
        description="prefill and decode on GPUs of their own; needs request_rate_per_s",
        examples=[True],
    )
    latency: Literal["full", "none"] = Field(
        default="full",
        description="none: memory alone, in a part of the time, without a latency in the answer; where limits or a "
        "rate are stated, latency decides",
        examples=["none"],
    )

    levers: Literal["settings", "all", "none"] = Field(
        default="settings",
        description="settings: what narrower formats and another load would save; all: what other GPUs that are rented "
        "out, smaller models and those with a leaner cache would save as well, each sized as a question of its own, "
        "which takes seconds; none: nothing is looked for, and the answer is there in about half the time",
        examples=["all"],
    )

    @field_validator("levers")
    @classmethod
    def _of_medians(cls, value: str, info: ValidationInfo) -> str:
        if value == "all" and info.data.get("confidence") is not None:
            sentence = "levers=all compares sizes by median times, and a confidence was stated"
            raise contradiction("levers", sentence, "settings, or no confidence")
        return value

    @field_validator("latency")
    @classmethod
    def _memory_alone(cls, value: str, info: ValidationInfo) -> str:
        decides = ("request_rate_per_s", "ttft_s", "tpot_s", "disaggregated")
        stated = [name for name in decides if info.data.get(name)]
        if value == "none" and stated:
            sentence = f"latency is none, and {stated[0]} cannot be answered without it"
            raise contradiction("latency", sentence, f"full, or no {stated[0]}")
        return value

    @model_validator(mode="after")
    def _without_time(self) -> Self:
        """Leave out times where only a number is read that they do not change: they tell equals apart, no more."""
        decides = (self.request_rate_per_s, self.ttft_s, self.tpot_s, self.disaggregated, self.confidence)
        if self.field in OF_ANY_TIME and self.levers == "settings" and not any(decides):
            self.__dict__["latency"] = "none"  # a question is frozen once it is read
        return self

    @model_validator(mode="after")
    def _without_levers(self) -> Self:
        """Look for no levers where only numbers are read that they do not change; by memory alone they take no time."""
        of_others = self.format == "prometheus" if self.field is None else not self.field.startswith(OF_LEVERS)
        if of_others and self.levers == "settings" and not self.is_of_memory_alone:
            self.__dict__["levers"] = "none"  # as above
        return self

    @property
    def is_of_memory_alone(self) -> bool:
        """Return whether nobody asked for times."""
        return self.latency == "none"

    def answer(self, sources: Sources) -> SizeAnswer:
        """Return the fewest GPUs of one type that carry the load."""
        if self.is_of_memory_alone and self.levers == "settings" and self.model is not None:
            return self._alike(sources)
        question = self.looked_up(sources)
        others = self._others(sources, question) if self.levers == "all" else ()
        sizing = size_beside(question, others, tells_levers=self.levers != "none")
        return SizeAnswer(with_others(sizing, wider(self, question, sizing, sources)), sources.catalog.revision)

    def _alike(self, sources: Sources) -> SizeAnswer:
        """Return the same by memory alone: what was computed for another load may be the answer to this one."""
        revision = sources.catalog.revision
        rest = tuple((name, value) for name, value in self.stated().items() if name not in OF_LOAD)
        looked = sources.alike.looked((type(self), revision, sources.today, repr(rest)), lambda: self._looked(sources))
        sources.readings.extend(looked.readings)
        load = self.load_of(self.input_tokens, self.output_tokens, self.speculative_acceptance_fraction)
        if looked.may_be_alike and (told := sources.alike.told(looked, load)):
            return SizeAnswer.written(*told, revision)
        sources.asked_about.append(looked.question.model)
        if not looked.may_be_alike:
            return SizeAnswer(size_beside(replace(looked.question, load=load), ()), revision)
        sizing, text = sources.alike.sizing(looked, load, lambda sizing: SizeAnswer(sizing, revision).json)
        return SizeAnswer(sizing, revision, text)

    def _looked(self, sources: Sources) -> Looked:
        aside = replace(sources, readings=[])
        question = self.looked_up(aside)
        return Looked(question=question, readings=tuple(aside.readings), may_be_alike=may_be_alike(question))

    def _others(self, sources: Sources, question: SizeQuestion) -> tuple[Other, ...]:
        """Return the same question of other GPUs, unless the price is that of one, and of other models."""
        catalog, model = sources.catalog, question.model
        rented = () if self.usd_per_gpu_hour else self.prices(sources, catalog.gpus).offers
        weights = question.settings.weight_format or own_checkpoint(model).weight_format
        changes = {
            "gpu": [gpu.id for gpu in other_gpus(catalog, question.gpu, weights, rented)],
            "model": [other.id for other in (*smaller_models(catalog, model), *leaner_models(catalog, model))],
        }
        aside = replace(sources, readings=[])
        return tuple(
            Other(kind=field, change={field: name}, question=other)
            for field, names in changes.items()
            for name in dict.fromkeys(names)
            if (other := self._with(field, name, aside)) is not None
        )

    def _with(self, field: str, name: str, sources: Sources) -> SizeQuestion | None:
        """Return the same question of something else; None where it is refused."""
        pasted = {"pasted_config": None, "weight_bytes": None, "num_parameters": None} if field == "model" else {}
        stated = {key: value for key, value in {**pasted, field: name}.items() if key in type(self).model_fields}
        try:
            return self.model_copy(update=stated).looked_up(sources)
        except (EngineError, RefusalError):
            return None

    def looked_up(self, sources: Sources) -> SizeQuestion:
        """Return the engine's question.

        Raises:
            RefusalError: the catalog lacks what was named.
            EngineError: the model, or the engine's version, has no rules.
        """
        timers = None if self.latency == "none" else self.timed(sources.timers)
        return replace(self.sized(sources, timers), disaggregated=self.disaggregated)


class SizeBody(PastedModel, SizeQuery):
    """`SizeQuery`, or the same with a pasted config."""


SIZE = Question(
    name="size",
    summary="How many GPUs of this type?",
    description="Return the fewest GPUs of one type that carry the load, the memory ledger, and every assumption.",
    query=SizeQuery,
    body=SizeBody,
    answer=SizeAnswer,
    abridged={"feasible": True, "gpus": 2, "replicas": 1, "gpus_per_replica": 2, "memory_per_gpu": MEMORY_PER_GPU},
    examples={
        "by name": {
            "summary": "64 requests of 6,000 tokens on H100",
            "value": {
                "model": "llama-3.3-70b",
                "gpu": "h100",
                "concurrent_requests": 64,
                "input_tokens": 5500,
                "output_tokens": 500,
                "weight_format": "fp8",
            },
        },
        "by rate": {
            "summary": "40 arrivals a second within limits, three tokens drafted a step",
            "value": {
                "model": "llama-3.1-8b",
                "gpu": "h100",
                "request_rate_per_s": 40,
                "input_tokens": 1000,
                "output_tokens": 200,
                "ttft_s": 0.5,
                "tpot_s": 0.04,
                "percentile": 95,
                "burstiness": 0.5,
                "length_distribution": "lognormal",
                "length_variation_fraction": 0.5,
                "speculative_method": "eagle3",
                "num_speculative_tokens": 3,
                "speculative_acceptance_fraction": 0.6,
            },
        },
        "at a confidence": {
            "summary": "limits that are kept with nine chances in ten",
            "value": {
                "model": "llama-3.1-8b",
                "gpu": "h100",
                "request_rate_per_s": 40,
                "input_tokens": 1000,
                "output_tokens": 200,
                "ttft_s": 0.5,
                "tpot_s": 0.04,
                "confidence": 0.9,
            },
        },
        "with adapters": {
            "summary": "four LoRA adapters in one batch, one replica to spare",
            "value": {
                "model": "llama-3.1-8b",
                "gpu": "h100",
                "concurrent_requests": 64,
                "input_tokens": 1000,
                "output_tokens": 200,
                "max_loras": 4,
                "max_lora_rank": 32,
                "spare_replicas": 1,
            },
        },
        "in pools": {
            "summary": "prefill and decode on GPUs of their own",
            "value": {
                "model": "llama-3.1-8b",
                "gpu": "h100",
                "request_rate_per_s": 40,
                "input_tokens": 1000,
                "output_tokens": 200,
                "disaggregated": True,
            },
        },
        "with spread caches": {
            "summary": "the tokens of one latent cache spread over eight ranks",
            "value": {
                "model": "deepseek-v3",
                "gpu": "h200",
                "concurrent_requests": 64,
                "input_tokens": 5500,
                "output_tokens": 500,
                "tensor_parallel_size": 8,
                "decode_context_parallel_size": 8,
            },
        },
        "by config": {
            "summary": "a model that is not in the catalog",
            "value": {
                "model_config": LLAMA_CONFIG,
                "gpu": "l40s",
                "concurrent_requests": 8,
                "input_tokens": 2000,
                "output_tokens": 500,
            },
        },
    },
)
