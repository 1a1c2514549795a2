"""`/recommend`: this model, this load; which GPU, layout and precision?"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Annotated, Final

from pydantic import Field, ValidationInfo, field_validator

from service.engine.answers.recommend import recommend
from service.engine.answers.results import Option, Recommendation, Rejection
from service.engine.fleet.questions import Objective, RecommendQuestion, ServiceClass
from service.engine.fleet.shortlist import product_line
from service.engine.inputs import Gpu, ProductLine
from service.questions.answers import Answer, Row, flat, numbers
from service.questions.asked import Asked, Question
from service.questions.lines import counted, latency_of, layout_of, model_of, terms_of
from service.questions.parts.deployment import InLayout, WithSettings
from service.questions.parts.load import SomeLoad, WithConfidence, WithHeadroom, WithinLimits
from service.questions.parts.model import NamedModel, PastedModel
from service.questions.parts.part import contradiction
from service.questions.parts.prices import EVERY, OF_OFFERS, Priced, Prices
from service.questions.refusals import Fault, RefusalError
from service.questions.sources import Sources
from service.questions.values import NUMBER, WHOLE, CacheDtypes, Formats, Gpus, ProductLines, Texts

MOST_REASONS: Final = 5
OF_ONE: Final = re.compile(r"\S*[A-Z0-9]\S*")  # names and numbers
FIGURES: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")
OF_OPTION: Final = tuple(field.name for field in fields(Option) if field.name not in ("warnings", "alternatives"))
USUAL_LINES: tuple[ProductLine, ...] = ("data-centre",)


class RecommendAnswer(Answer[Recommendation]):
    """Ways to serve the load, best first, and what was left out."""

    def rows(self) -> Sequence[Row]:
        """Return one row for each option; without any, one for what was left out, with its reason in the same columns.

        A table without a row would say neither what its columns are nor why there is nothing.
        """
        options, empty = self.document["options"], dict.fromkeys((*OF_OPTION, "warnings", "reason"))
        if options:
            return [
                {**empty, **dict(flat(option)), "warnings": "; ".join([*self.result.warnings, *option["warnings"]])}
                for option in options
            ]
        told = "; ".join(self.result.warnings) or None
        return [{**empty, **rejection, "warnings": told} for rejection in self.document["rejected"]]

    def lines(self) -> Sequence[str]:
        """Return the options, best first, and what starts the first."""
        options, rejected = self.result.options, self.result.rejected
        head = f"{model_of(self.result)}: {counted(len(options), 'option')}, {len(rejected)} left out"
        warned = [f"warning: {sentence}" for sentence in self.result.warnings]
        if not options:
            return [head, *_left_out(rejected), *warned]
        return [head, *(_line(option) for option in options), *_started(options[:1]), *warned, *_warned(options)]

    def gauges(self) -> Iterator[tuple[str, float]]:
        """Yield the numbers of the best option, and how many there are."""
        options = self.document["options"]
        return numbers({"options_count": len(options), "best": options[0]})


def _left_out(rejected: Sequence[Rejection]) -> Iterator[str]:
    """Yield the reasons that are most frequent, those that differ in names and numbers together.

    Of these the one by the smallest numbers is told: what misses a budget or a limit by least.
    """
    alike: dict[str, list[Rejection]] = {}
    for rejection in rejected:
        alike.setdefault(OF_ONE.sub("", rejection.reason), []).append(rejection)
    groups = sorted(alike.values(), key=len, reverse=True)
    for group in groups[:MOST_REASONS]:
        nearest = min(group, key=_figures)
        form = "" if nearest.weight_format is None else f" in {nearest.weight_format}"
        yield f"{len(group)} left out, such as {nearest.gpu}{form}: {nearest.reason}"
    num_more = sum(len(group) for group in groups[MOST_REASONS:])
    if num_more:
        yield f"{num_more} left out for other reasons; format=csv or json lists each"


def _figures(rejection: Rejection) -> tuple[float, ...]:
    return tuple(map(float, FIGURES.findall(rejection.reason)))


def _started(options: Sequence[Option]) -> Iterator[str]:
    """Yield the commands, each below the rank of its option; nothing of those that no command starts."""
    for option in options:
        if option.command is not None:
            yield from (f"command of {option.rank}:", *option.command.splitlines())


def _warned(options: Sequence[Option]) -> Iterator[str]:
    """Yield each warning once, with the ranks of the options that it is about."""
    ranks: dict[str, list[str]] = {}
    for option in options:
        for warning in option.warnings:
            ranks.setdefault(warning, []).append(str(option.rank))
    yield from (f"warning of {', '.join(about)}: {warning}" for warning, about in ranks.items())


def _line(option: Option) -> str:
    price, latency = "no published price", ""
    if option.usd_per_hour is not None:
        offer = "at the caller's own price" if option.provider is None else f"{option.provider} {option.instance_type}"
        price = f"{option.usd_per_hour:.2f} USD/h {offer}{terms_of(option)}"
    if option.usd_per_million_output_tokens is not None:
        price += f", {option.usd_per_million_output_tokens:.2f} USD/M output tokens"
    if option.ttft_p95_s is not None and option.tpot_p95_s is not None:
        within = f", within {100 * option.expected_error_fraction:.0f} %" if option.expected_error_fraction else ""
        latency = f", {latency_of(option.ttft_p95_s, option.tpot_p95_s)} ({option.basis}{within})"
    shape = f"{layout_of(option)} x {option.replicas}, {option.weight_format}"
    return f"{option.rank}. {option.gpus} x {option.gpu} ({shape}) {price}{latency}"


class RecommendQuery(
    Asked, Priced, WithSettings, InLayout, WithConfidence, WithHeadroom, WithinLimits, SomeLoad, NamedModel
):
    """This model, this load: which GPU, layout and precision?"""

    gpus: Texts | None = Field(default=None, description="consider only these GPUs", examples=[["h100", "l40s"]])
    exclude_gpus: Texts | None = Field(default=None, description="leave these GPUs out", examples=[["t4"]])
    product_lines: ProductLines | None = Field(
        default=None,
        description="whom the GPUs considered are made for, where gpus names none: data-centre (default), workstation, "
        "consumer",
        examples=[["data-centre", "consumer"]],
    )
    max_gpus: Gpus | None = Field(default=None, description="leave out what needs more GPUs [count]", examples=[16])
    max_usd_per_hour: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False), NUMBER] | None = Field(
        default=None, description="leave out what costs more [USD per hour]", examples=[50]
    )
    weight_formats: Formats | None = Field(
        default=None,
        description="default: the formats the model is published in; where `gpus` names none, on each GPU those it "
        "computes in, and of four bits those of the model's publisher",
        examples=[["bf16", "fp8"]],
    )
    kv_cache_dtypes: CacheDtypes | None = Field(
        default=None, description="default: kv_cache_dtype", examples=[["auto", "fp8"]]
    )
    objective: Objective = Field(
        default="cost",
        description="what comes first: the lowest price, the lowest price of a token at the asked load (of usual "
        "layouts at up to twice the lowest price), the fewest GPUs, or the lowest latency",
        examples=["gpus"],
    )
    service_class: ServiceClass = Field(
        default="interactive",
        description="without ttft_s and tpot_s: interactive keeps 5 s and 0.1 s of both, batch keeps no limit",
        examples=["batch"],
    )
    limit: Annotated[int, Field(ge=1, le=1000), WHOLE] = Field(
        default=10, description="options to return at most [count]", examples=[3]
    )

    @field_validator("weight_formats")
    @classmethod
    def _made_while_loading(cls, value: Formats | None, info: ValidationInfo) -> Formats | None:
        made = info.data.get("quantization")
        if made is not None and set(value or ()) - {made}:
            sentence = f"quantization={made} while loading leaves no weights in another format"
            raise contradiction("quantization", sentence, "either alone")
        return value

    @field_validator("weight_formats", "kv_cache_dtypes")
    @classmethod
    def _with_the_one(cls, value: tuple[str, ...] | None, info: ValidationInfo) -> tuple[str, ...] | None:
        """Refuse a list without the one that is stated beside it, which nothing would heed."""
        one = str(info.field_name).removesuffix("s")
        stated = info.data.get(one)
        if value is not None and stated not in (None, "auto", *value):
            raise contradiction(one, f"{one} is {stated}, which {info.field_name} leaves out", "one of them")
        return value

    @field_validator("product_lines")
    @classmethod
    def _of_unnamed(cls, value: ProductLines | None, info: ValidationInfo) -> ProductLines | None:
        if value is not None and info.data.get("gpus"):
            raise contradiction("product_lines", "product_lines speaks of GPUs that gpus does not name", "one of them")
        return value

    def answer(self, sources: Sources) -> RecommendAnswer:
        """Return ways to carry the load, best first."""
        return RecommendAnswer(recommend(self.looked_up(sources)), sources.catalog.revision)

    def looked_up(self, sources: Sources) -> RecommendQuestion:
        """Return the engine's question.

        Raises:
            RefusalError: the catalog lacks what was named, or the lists leave no GPU.
            EngineError: the model, or the engine's version, has no rules.
        """
        model = self.model_facts(sources)
        gpus, others = self._gpus(sources)
        prices = self._prices(sources, gpus)
        load = self.load_of(self.input_tokens, self.output_tokens, self.speculative_acceptance_fraction)
        return RecommendQuestion(
            model=model,
            gpus=gpus,
            load=load,
            limits=self.limits(),
            headroom=self.headroom(),
            settings=self.settings_wish(),
            layout=self.layout_wish(),
            rules=self.rules_of(sources, model),
            flags=self.flags(),
            offers=prices.offers,
            left_out_offers=prices.left_out,
            price_terms=self.price_terms(),
            timers=self.slowed(self.timed(sources.timers)),
            confidence=self.confidence,
            weight_formats=tuple(self.weight_formats or ()),
            kv_cache_dtypes=tuple(self.kv_cache_dtypes or ()),
            is_shortlist=not self.gpus,
            left_out_gpus=others,
            is_price_needed=any(getattr(self, name) for name in OF_OFFERS),
            max_gpus=self.max_gpus,
            max_usd_per_hour=self.max_usd_per_hour,
            objective=self.objective,
            service_class=self.service_class,
            limit=self.limit,
        )

    def _prices(self, sources: Sources, gpus: tuple[Gpu, ...]) -> Prices:
        """Return the offers that count.

        Raises:
            RefusalError: one price was stated for several types of GPU.
        """
        if self.usd_per_gpu_hour is not None and len(gpus) > 1:
            detail = f"usd_per_gpu_hour is the price of one type of GPU, and {len(gpus)} are in question"
            raise RefusalError("invalid-request", detail, Fault("usd_per_gpu_hour", detail, "gpus with one name"))
        return self.prices(sources, (gpu.id for gpu in gpus), names=self.gpus or ())

    def _gpus(self, sources: Sources) -> tuple[tuple[Gpu, ...], tuple[Gpu, ...]]:
        """Return the GPUs to consider, without a list those in question that somebody rents out; and the others."""
        excluded = {sources.gpu(name, field="exclude_gpus").id for name in self.exclude_gpus or ()}
        catalog, lines = sources.catalog, frozenset(self.product_lines or USUAL_LINES)
        if self.gpus and (every := next((name for name in self.gpus if name.strip().lower() in EVERY), None)):
            detail = f"{every!r} is no GPU"
            raise RefusalError("invalid-request", detail, Fault("gpus", detail, "leave gpus out, or name them"))
        if self.gpus:
            has_own_price = self.usd_per_gpu_hour is not None
            named = [sources.rented_gpu(name, field="gpus", has_own_price=has_own_price) for name in self.gpus]
            asked, others = named, []
        else:
            prices = self.prices(sources, catalog.gpus)
            if not prices.offers and prices.left_out:
                raise self.no_offer(prices.left_out)
            rented = {offer.gpu for offer in prices.offers}
            known = [gpu for gpu in catalog.gpus.values() if gpu.id in rented] or list(catalog.gpus.values())
            asked = [gpu for gpu in known if product_line(gpu) in lines]
            others = [gpu for gpu in known if product_line(gpu) not in lines]
        unique = {gpu.id: gpu for gpu in asked if gpu.id not in excluded}
        if not unique:
            raise self._nothing_left(others)
        return tuple(unique.values()), tuple(gpu for gpu in others if gpu.id not in excluded)

    def _nothing_left(self, others: Sequence[Gpu]) -> RefusalError:
        """Return that lists leave no GPU to consider."""
        if others and not self.exclude_gpus:
            detail = "nobody in question rents out GPUs of these product lines"
            lines = sorted({product_line(gpu) for gpu in others})
            return RefusalError("invalid-request", detail, Fault("product_lines", detail, ", ".join(lines)))
        detail = "exclude_gpus leaves no GPU to consider"
        return RefusalError("invalid-request", detail, Fault("exclude_gpus", detail, "a list that leaves one of gpus"))


class RecommendBody(PastedModel, RecommendQuery):
    """`RecommendQuery`, or the same with a pasted config."""


RECOMMEND = Question(
    name="recommend",
    summary="Which GPU, layout and precision?",
    description="Return ways to carry the load, best first, and what was left out and why. Order by objective: cost is "
    "the price, then GPUs paid; gpus is GPUs used, then the price; among equals the lower latency, then the plainer "
    "layout: tensor parallelism before pipeline stages; of one GPU type the model's own format stands first, then the "
    "wider one. The Pareto front is of price, TTFT, TPOT and GPUs. Without "
    "gpus, GPUs of data centres that somebody rents out are considered.",
    query=RecommendQuery,
    body=RecommendBody,
    answer=RecommendAnswer,
    abridged={
        "feasible": True,
        "model": "qwen3-32b",
        "options": [{"rank": 1, "gpu": "h100-sxm-80gb", "gpus": 1, "usd_per_hour": 2.99}],
    },
    examples={
        "by name": {
            "summary": "the cheapest way to serve 32 requests at once",
            "value": {"model": "qwen3-32b", "concurrent_requests": 32, "input_tokens": 2000, "output_tokens": 500},
        },
    },
)
