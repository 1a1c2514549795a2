"""`/capacity`: this model on these GPUs; how much load?"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from service.engine.answers.capacity import capacity
from service.engine.answers.results import Capacity
from service.engine.engines.registry import engine_named
from service.engine.fleet.questions import CapacityQuestion
from service.engine.inputs import Arrival, Gpu, StatedLayout
from service.questions.answers import Answer, Row, flat
from service.questions.asked import Asked, Question
from service.questions.examples import MEMORY_PER_GPU
from service.questions.lines import checkpoint_of, deployment_lines, shape_of
from service.questions.parts.deployment import InLayout, WithSettings
from service.questions.parts.gpu import OnGpu
from service.questions.parts.load import AnyLoad, WithConfidence, WithinLimits
from service.questions.parts.model import NamedModel, PastedModel
from service.questions.parts.part import absent, contradiction
from service.questions.parts.prices import Priced
from service.questions.refusals import Fault, RefusalError
from service.questions.sources import Sources
from service.questions.values import WHOLE, Gpus, Tokens

IN_EVERY_ROW = ("model", "gpu", "gpus", "weight_format", "kv_cache_dtype")
OF_LENGTHS: Final = frozenset({"length_distribution", "length_variation_fraction"})


class CapacityAnswer(Answer[Capacity]):
    """How much load the GPUs carry, and the engine's own start-up numbers."""

    def rows(self) -> Sequence[Row]:
        """Return one row for each context length."""
        document, result = self.document, self.result
        shared = {name: document[name] for name in IN_EVERY_ROW}
        told = {
            "usd_per_hour": result.cost.usd_per_hour if result.cost else None,
            "checkpoint": checkpoint_of(result.assumptions),
        }
        return [{**shared, **dict(flat(row)), **told} for row in document["table"]]

    def lines(self) -> Sequence[str]:
        """Return the deployment."""
        return [*deployment_lines(self.result, shape_of(self.result))]


class CapacityQuery(Asked, Priced, WithSettings, InLayout, WithConfidence, WithinLimits, AnyLoad, OnGpu, NamedModel):
    """This model on these GPUs: how much load?"""

    gpu_count: Gpus | None = Field(
        default=None, description="GPUs at hand; default: one replica of the layout, or 1 [count]", examples=[8]
    )
    input_tokens: Tokens | None = Field(default=None, description="mean prompt length [tokens]", examples=[1000])
    output_tokens: Tokens | None = Field(default=None, description="mean completion length [tokens]", examples=[200])
    num_prompts: Annotated[int, Field(ge=1, le=100_000), WHOLE] | None = Field(
        default=None,
        description="latency and rates are those a benchmark of so many prompts prints, with ramp and drain; of vLLM's "
        "all are as long as stated, unless length_distribution or length_variation_fraction says otherwise [count]",
        examples=[640],
    )
    arrival: Arrival | None = Field(
        default=None,
        description="steady (default), or how a benchmark's prompts come: burst, concurrent_requests users who begin "
        "at once (default with num_prompts); poisson, at request_rate_per_s",
        examples=["burst"],
    )

    @field_validator("num_prompts")
    @classmethod
    def _of_some_load(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is not None and absent(info, "concurrent_requests") and absent(info, "request_rate_per_s"):
            sentence = "num_prompts needs concurrent_requests or request_rate_per_s"
            raise contradiction("num_prompts", sentence, "either beside it")
        return value

    @field_validator("arrival")
    @classmethod
    def _of_a_benchmark(cls, value: Arrival | None, info: ValidationInfo) -> Arrival | None:
        if value == "steady" and not absent(info, "num_prompts"):
            raise contradiction("arrival", "a steady state has no first and last prompt", "arrival or num_prompts")
        if value in ("burst", "poisson") and absent(info, "num_prompts"):
            raise contradiction("arrival", f"arrival={value} is of a benchmark", "num_prompts beside it")
        needed = {"burst": "concurrent_requests", "poisson": "request_rate_per_s"}.get(value or "")
        if needed is not None and absent(info, needed):
            raise contradiction("arrival", f"arrival={value} is of {needed}", f"{needed} beside it")
        return value

    @model_validator(mode="after")
    def _as_long_as_stated(self) -> Self:
        """Send a benchmark's prompts as the engine's own does, where nobody says how their lengths spread."""
        if self.num_prompts is not None and not OF_LENGTHS & self.model_fields_set:
            lengths = engine_named(self.engine).benchmark_lengths
            self.__dict__["length_distribution"] = lengths  # a question is frozen once it is read
        return self

    def stated(self) -> dict[str, Any]:
        """Return what was asked; of a benchmark also how lengths spread, whose default is not that of other loads."""
        stated = super().stated()
        return stated if self.num_prompts is None else {**stated, "length_distribution": self.length_distribution}

    def answer(self, sources: Sources) -> CapacityAnswer:
        """Return the requests that fit, and how they are served."""
        return CapacityAnswer(capacity(self.looked_up(sources)), sources.catalog.revision)

    def looked_up(self, sources: Sources) -> CapacityQuestion:
        """Return the engine's question.

        Raises:
            RefusalError: the catalog lacks what was named.
            EngineError: the model, or the engine's version, has no rules.
        """
        (gpu, gpu_count), wish = self._gpus(sources), self.layout_wish()
        prices = self.prices(sources, (gpu.id,), names=(self.gpu,))
        input_tokens, output_tokens = self.input_tokens or 0, self.output_tokens or 0
        model = self.model_facts(sources)
        load = self.load_of(input_tokens, output_tokens, self.speculative_acceptance_fraction)
        return CapacityQuestion(
            model=model,
            gpu=gpu,
            gpu_count=_one_replica(wish) if gpu_count is None else gpu_count,
            is_count_stated=gpu_count is not None,
            load=replace(load, num_prompts=self.num_prompts, arrival=self.arrival),
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            limits=self.limits().breakable(load),
            layout=wish,
            settings=self.settings_wish(),
            rules=self.rules_of(sources, model),
            flags=self.flags(),
            offers=prices.offers,
            left_out_offers=prices.left_out,
            price_terms=self.price_terms(),
            timers=self.slowed(self.timed(sources.timers)),
            confidence=self.confidence,
        )

    def _gpus(self, sources: Sources) -> tuple[Gpu, int | None]:
        """Return the GPU, and how many were stated, by the field or by the name.

        Raises:
            RefusalError: the catalog has no such GPU, or the name counts others than the field.
        """
        gpu, counted = sources.counted_gpu(self.gpu, field="gpu")
        if counted is not None and self.gpu_count not in (None, counted):
            detail = f"gpu counts {counted} GPUs, and gpu_count states {self.gpu_count}"
            raise RefusalError("invalid-request", detail, Fault("gpu_count", detail, f"{counted}, or gpu={gpu.id}"))
        return gpu, counted if self.gpu_count is None else self.gpu_count


def _one_replica(wish: StatedLayout) -> int:
    """Return the GPUs of one replica of a wished layout: TP x PP x DP, each 1 where nothing was wished."""
    return (wish.tensor_parallel_size or 1) * (wish.pipeline_parallel_size or 1) * (wish.data_parallel_size or 1)


class CapacityBody(PastedModel, CapacityQuery):
    """`CapacityQuery`, or the same with a pasted config."""


CAPACITY = Question(
    name="capacity",
    summary="How much load do these GPUs carry?",
    description="Return the requests that fit, the engine's start-up numbers, and a table of context lengths. Where no "
    "latency is limited and no such load asked for, up to a twentieth of the requests is left out for a token budget "
    "that answers far more of them, or begins to far sooner. Where a load is asked for without limits, the layout is "
    "chosen that ends its requests soonest of those that carry it and no less than one GPU less would; without lengths "
    "the plainest that holds at most a twentieth fewer whole contexts. A warning names the one that carries most.",
    query=CapacityQuery,
    body=CapacityBody,
    answer=CapacityAnswer,
    abridged={"feasible": True, "max_concurrent_requests": 30, "gpus": 1, "memory_per_gpu": MEMORY_PER_GPU},
    examples={
        "by name": {
            "summary": "Qwen2.5 7B on one H100",
            "value": {"model": "qwen2.5-7b-instruct", "gpu": "h100", "gpu_count": 1},
        },
    },
)
