"""`/compare`: models, GPUs, formats, contexts and loads side by side, as flat rows."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from service.engine.answers.results import Capacity, Sizing
from service.engine.errors import EngineError, raise_own
from service.engine.fleet.lengths import lengths_within
from service.engine.fleet.results import Assumption
from service.engine.memory.sharing import cache_sharing
from service.questions.answers import Answer, Row, numbers
from service.questions.asked import Asked, Question
from service.questions.capacity import CapacityQuery
from service.questions.parts.compared import Cell, ComparedRow, Comparison, answered, line_of, refused, stale_prices
from service.questions.parts.deployment import InLayout
from service.questions.parts.load import WithConfidence, WithinLimits
from service.questions.parts.part import absent, contradiction
from service.questions.parts.prices import Priced
from service.questions.refusals import Fault, RefusalError
from service.questions.size import SizeQuery
from service.questions.sources import Sources
from service.questions.values import CacheDtypes, Formats, Gpus, Requests, RequestsPerS, Texts, Tokens, several

MOST_ROWS: Final = 200
LENGTHS: Final = ("input_tokens", "output_tokens")
USUAL_COUNTS: Final = (1, 2, 4, 8, 16)
CONTEXTS: Final = (2_048, 8_192, 32_768, 131_072)
BESIDE_ITS_LISTS: Final = frozenset({"format", "field", "catalog_revision"})
COMBINED: Final = (
    "model", "gpu", "weight_format", "kv_cache_dtype", "context_tokens", "input_tokens", "output_tokens",
    "concurrent_requests", "request_rate_per_s",
)  # fmt: skip
Listed = tuple[str, Sequence[Any]]  # a field of the row's question, and its values


class CompareAnswer(Answer[Comparison]):
    """All combinations, one flat row each."""

    def rows(self) -> Sequence[Row]:
        """Return the rows, each with what is to be known of all of them, and of its own price."""
        of_prices = stale_prices(self.result.rows)
        of_all = [sentence for sentence in self.result.warnings if sentence not in of_prices]
        rows = zip(self.document["rows"], self.result.rows, strict=True)
        return [{**row, "warnings": "; ".join((*of_all, *stale_prices((told,))))} for row, told in rows]

    def lines(self) -> Sequence[str]:
        """Return one line for each combination."""
        warned = (f"warning: {sentence}" for sentence in self.result.warnings)
        return [*(line_of(row) for row in self.result.rows), *warned]

    def groups(self) -> Iterator[tuple[Mapping[str, str], Iterator[tuple[str, float]]]]:
        """Yield the numbers of each row, with its place and what it is the combination of."""
        for index, row in enumerate(self.document["rows"]):
            told_by = {name: "" if row[name] is None else str(row[name]) for name in COMBINED}
            rest = {name: value for name, value in row.items() if name not in COMBINED}
            yield {"row": str(index), **told_by}, numbers(rest)


Counts = Annotated[list[Gpus], Field(min_length=1, max_length=50), BeforeValidator(several)]
Lengths = Annotated[list[Tokens], Field(min_length=1, max_length=50), BeforeValidator(several)]
Users = Annotated[list[Requests], Field(min_length=1, max_length=50), BeforeValidator(several)]
Rates = Annotated[list[RequestsPerS], Field(min_length=1, max_length=50), BeforeValidator(several)]


class CompareQuery(Asked, Priced, InLayout, WithConfidence, WithinLimits):
    """Every combination of the lists."""

    models: Texts = Field(description="catalog ids, Hugging Face ids or aliases", examples=[["llama-3.1-8b"]])
    gpus: Texts = Field(description="GPU ids or aliases", examples=[["h100", "l40s"]])
    weight_formats: Formats | None = Field(
        default=None, description="default: each model's own checkpoint", examples=[["bf16", "fp8"]]
    )
    kv_cache_dtypes: CacheDtypes | None = Field(default=None, description="default: auto", examples=[["auto", "fp8"]])
    context_tokens: Lengths | None = Field(
        default=None,
        description="contexts that requests fill: without a load, 2048 to 131072 by default; with one, instead of "
        "input_tokens and output_tokens: an eighth of each, 512 tokens at most, is output [tokens]",
        examples=[[2048, 131072]],
    )
    gpu_counts: Counts | None = Field(
        default=None,
        description="without a load: GPUs at hand; default: the fewest of 1, 2, 4, 8 and 16 that hold one [count]",
        examples=[[1, 8]],
    )
    input_tokens: Lengths | None = Field(
        default=None, description="with a load: mean prompt lengths [tokens]", examples=[[1000, 8000]]
    )
    output_tokens: Lengths | None = Field(
        default=None, description="with a load: mean completion lengths [tokens]", examples=[[200]]
    )
    concurrent_requests: Users | None = Field(
        default=None, description="requests in flight at once: how many GPUs carry each [count]", examples=[[8, 64]]
    )
    request_rate_per_s: Rates | None = Field(
        default=None,
        validate_default=True,
        description="arrivals per second, instead of concurrent_requests [1/s]",
        examples=[[1, 10]],
    )

    @field_validator("request_rate_per_s")
    @classmethod
    def _one_kind(cls, value: list[float] | None, info: ValidationInfo) -> list[float] | None:
        if value is not None and info.data.get("concurrent_requests") is not None:
            sentence = "concurrent_requests and request_rate_per_s were both stated"
            raise contradiction("concurrent_requests", sentence, "one of them")
        is_loaded = value is not None or info.data.get("concurrent_requests") is not None
        has_contexts = info.data.get("context_tokens") is not None
        for name in ("input_tokens", "output_tokens"):
            if is_loaded and not has_contexts and absent(info, name):
                raise contradiction(name, f"a load needs {name}", f"{name} beside it, or context_tokens")
            if is_loaded and has_contexts and info.data.get(name) is not None:
                raise contradiction(name, f"context_tokens takes the place of {name}", "one of them")
            if not is_loaded and "concurrent_requests" in info.data and info.data.get(name) is not None:
                raise contradiction(name, f"{name} is of a load", "concurrent_requests or request_rate_per_s beside it")
        if is_loaded and has_contexts and min(info.data["context_tokens"]) < len(LENGTHS):
            raise contradiction("context_tokens", "a context holds a prompt and an answer", "2 tokens at least")
        if is_loaded and info.data.get("gpu_counts") is not None:
            raise contradiction("gpu_counts", "gpu_counts goes without a load", "gpu_counts, or a load")
        return value

    def answer(self, sources: Sources) -> CompareAnswer:
        """Return a row for each combination.

        Raises:
            RefusalError: there are too many, or the catalog lacks what was named.
            EngineError: every combination is refused, by what the question states of layouts or lengths.
        """
        lists = self._lists()
        count = prod(len(values) for _, values in lists)
        if count > MOST_ROWS:
            detail = f"{count} combinations were asked for, and {MOST_ROWS} are answered at once"
            raise RefusalError(
                "invalid-request", detail, Fault("models", detail, "shorter lists, in several questions")
            )
        names = [name for name, _ in lists]
        cells = [_spelled(dict(zip(names, values, strict=True))) for values in product(*(each for _, each in lists))]
        faults: list[EngineError] = []
        rests: list[Sequence[Assumption]] = []
        rows = tuple(self._row(cell, sources, faults, rests) for cell in cells)
        raise_own(faults, len(cells))
        told = Comparison(
            feasible=any(row.feasible for row in rows),
            rows=rows,
            assumptions=_of_all(rests),
            warnings=stale_prices(rows),
            rules_version=self.rules().rules_version,
        )
        return CompareAnswer(told, sources.catalog.revision)

    def _lists(self) -> tuple[Listed, ...]:
        """Return what is combined, by the names a single question has for it."""
        shared: tuple[Listed, ...] = (
            ("model", self.models),
            ("gpu", self.gpus),
            ("weight_format", self.weight_formats or (None,)),
            ("kv_cache_dtype", self.kv_cache_dtypes or (None,)),
        )
        if self.concurrent_requests is None and self.request_rate_per_s is None:
            counts = self.gpu_counts or (None,)
            return (*shared, ("gpu_count", counts), ("max_model_len", self.context_tokens or CONTEXTS))
        lengths: tuple[Listed, ...] = (
            ("input_tokens", self.input_tokens or ()),
            ("output_tokens", self.output_tokens or ()),
        )
        if self.context_tokens is not None:
            lengths = (("context_tokens", self.context_tokens),)
        load = ("concurrent_requests", self.concurrent_requests or ())
        rate = ("request_rate_per_s", self.request_rate_per_s or ())
        return (*shared, *lengths, load if self.concurrent_requests else rate)

    def _row(
        self, cell: Cell, sources: Sources, faults: list[EngineError], rests: list[Sequence[Assumption]]
    ) -> ComparedRow:
        """Return the row of a combination; one that the engine refuses says why: a fault, if of a field all share.

        What a row rests on is added to that of the others.
        """
        own = {"models", "gpus", "weight_formats", "kv_cache_dtypes", "context_tokens", "gpu_counts"}
        loaded = {"input_tokens", "output_tokens", "concurrent_requests", "request_rate_per_s"}
        shared = self.model_dump(exclude=own | loaded | BESIDE_ITS_LISTS, exclude_none=True)
        asked = {**shared, **{name: value for name, value in cell.items() if value is not None}}
        try:
            facts = sources.model(cell["model"], field="models")
            gpu = sources.gpu_reading(cell["gpu"], field="gpus").gpu_id
        except EngineError as refusal:
            return refused(cell, refusal.detail, cell["model"], cell["gpu"])
        try:
            told = _told(cell, asked, sources)
            rests.append(told.assumptions)
            return answered(cell, told, cache_sharing(facts.architecture))
        except EngineError as refusal:
            faults.extend(() if refusal.field not in shared else (refusal,))
            return refused(cell, refusal.detail, facts.id, gpu)


def _of_all(rests: Sequence[Sequence[Assumption]]) -> tuple[Assumption, ...]:
    """Return what every row rests on: what differs between them is asked for, or stands in the rows."""
    shared = frozenset(rests[0] if rests else ()).intersection(*rests)
    return tuple(each for each in rests[0] if each in shared) if rests else ()


def _spelled(cell: dict[str, Any]) -> Cell:
    """Return a combination with its prompt and answer, where it states the context that they fill."""
    context = cell.pop("context_tokens", None)
    return cell if context is None else cell | dict(zip(LENGTHS, lengths_within(context), strict=True))


def _told(cell: Cell, asked: Cell, sources: Sources) -> Sizing | Capacity:
    """Return the answer to one combination; without a load or a count, of the fewest GPUs that hold a request.

    Raises:
        EngineError: the engine refuses it.
    """
    if "input_tokens" in cell:
        return SizeQuery.model_validate(asked).answer(sources).result
    counted = cell["gpu_count"] or sources.gpu_reading(cell["gpu"], field="gpus").gpu_count
    counts = (counted,) if counted else USUAL_COUNTS
    for count in counts:
        told = CapacityQuery.model_validate({**asked, "gpu_count": count}).answer(sources).result
        if told.feasible:
            break
    return told


class CompareBody(CompareQuery):
    """`CompareQuery`, as JSON."""


COMPARE = Question(
    name="compare",
    summary="Many combinations side by side",
    description="Return a flat row for every combination of models, GPUs, formats, contexts or loads: with a load, how "
    "many GPUs carry it; without one, how many requests of each context the GPUs hold.",
    query=CompareQuery,
    body=CompareBody,
    answer=CompareAnswer,
    abridged={"feasible": True, "rows": [{"model": "llama-3.1-8b-instruct", "gpu": "h100-sxm-80gb", "gpus": 1}]},
    examples={
        "contexts": {
            "summary": "what sharing keys and values saves, from 2K to 128K",
            "value": {"models": ["qwen2.5-7b", "mistral-7b-instruct-v0.3"], "gpus": ["h100"]},
        },
        "loads": {
            "summary": "price against latency, over GPUs and formats",
            "value": {
                "models": ["llama-3.1-8b"],
                "gpus": ["h100", "l40s"],
                "weight_formats": ["bf16", "fp8"],
                "concurrent_requests": [8, 64],
                "input_tokens": [1000],
                "output_tokens": [200],
            },
        },
    },
)
