"""The load a question is about, what must hold of it, and what is kept free."""

from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from service.engine.inputs import Headroom, LengthDistribution, Limits, Load
from service.engine.time.confidence import MEDIAN, slower
from service.engine.time.steps import StepTimers
from service.questions.parts.part import Part, absent, contradiction
from service.questions.values import NUMBER, WHOLE, Requests, RequestsPerS, Seconds, Share, Tokens


class AnyLoad(Part):
    """A load that may be stated, at a concurrency or a rate."""

    concurrent_requests: Requests | None = Field(
        default=None,
        description="requests in flight at once, of users who send the next one when one is answered: the faster the "
        "service, the more they ask of it; where demand is given, state request_rate_per_s instead [count]",
        examples=[64],
    )
    request_rate_per_s: RequestsPerS | None = Field(
        default=None,
        validate_default=True,
        description="arrivals per second, from 4e-07, which is one a month [1/s]; or state concurrent_requests",
        examples=[40],
    )
    request_duration_s: Seconds | None = Field(
        default=None,
        description="seconds a request lives; default: as simulated at the asked rate [s]",
        examples=[12.5],
    )
    prefix_cache_hit_fraction: Share = Field(
        default=0.0, description="share of input tokens already cached [fraction]", examples=[0.5]
    )
    length_distribution: LengthDistribution = Field(
        default="uniform",
        description="how prompt and completion lengths spread around their means",
        examples=["lognormal"],
    )
    length_variation_fraction: Annotated[float, Field(ge=0, le=5, allow_inf_nan=False), NUMBER] = Field(
        default=0.1,
        description="uniform: half width over mean, at most 1; lognormal: standard deviation over mean [fraction]",
        examples=[0.5],
    )
    burstiness: Annotated[float, Field(ge=0.05, le=1000, allow_inf_nan=False), NUMBER] = Field(
        default=1.0,
        description="of all arrivals at a rate: 1 is Poisson, below 1 bursts, above 1 is more even; replicas share a "
        "burst, and get their parts less bursty, but for a pod of /replicas, which is told to stand all of it [ratio]",
        examples=[0.5],
    )

    @field_validator("request_rate_per_s", mode="before")
    @classmethod
    def _finite(cls, value: object) -> object:
        # Of `vllm bench serve --request-rate`, whose default it is.
        if str(value).strip().lower() in ("inf", "infinity", "+inf"):
            sentence = "an endless rate is a benchmark's word for all prompts at once"
            accepted = "a finite number; all at once are as many concurrent_requests"
            raise contradiction("request_rate_per_s", sentence, accepted)
        return value

    @field_validator("request_rate_per_s")
    @classmethod
    def _one_load(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is not None and info.data.get("concurrent_requests") is not None:
            sentence = "concurrent_requests and request_rate_per_s were both stated"
            raise contradiction("concurrent_requests", sentence, "one of them")
        return value

    @field_validator("request_duration_s")
    @classmethod
    def _duration_of_arrivals(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is not None and absent(info, "request_rate_per_s"):
            sentence = "request_duration_s goes with request_rate_per_s"
            raise contradiction("request_duration_s", sentence, "both, or neither")
        return value

    @field_validator("length_variation_fraction")
    @classmethod
    def _half_width(cls, value: float, info: ValidationInfo) -> float:
        if value > 1 and info.data.get("length_distribution") == "uniform":
            sentence = "length_variation_fraction of a uniform distribution is at most 1"
            raise contradiction("length_variation_fraction", sentence, "0 to 1")
        return value

    @field_validator("burstiness")
    @classmethod
    def _burstiness_of_arrivals(cls, value: float, info: ValidationInfo) -> float:
        # Without any load it waits for one: a workload's is stated when it is asked.
        if value != 1.0 and info.data.get("concurrent_requests") is not None:
            sentence = "burstiness is of arrivals at request_rate_per_s"
            raise contradiction("burstiness", sentence, "1 without a rate")
        return value

    def load_of(self, input_tokens: int, output_tokens: int, speculative_acceptance_fraction: float | None) -> Load:
        """Return the load of requests of these lengths."""
        return Load(
            concurrent_requests=self.concurrent_requests,
            request_rate_per_s=self.request_rate_per_s,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            request_duration_s=self.request_duration_s,
            prefix_cache_hit_fraction=self.prefix_cache_hit_fraction,
            length_distribution=self.length_distribution,
            length_variation_fraction=self.length_variation_fraction,
            burstiness=self.burstiness,
            speculative_acceptance_fraction=speculative_acceptance_fraction,
        )


class SomeLoad(AnyLoad):
    """A load that must be stated."""

    input_tokens: Tokens = Field(description="mean prompt length [tokens]", examples=[5500])
    output_tokens: Tokens = Field(description="mean completion length [tokens]", examples=[500])

    @field_validator("request_rate_per_s")
    @classmethod
    def _some_load(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is None and absent(info, "concurrent_requests"):
            accepted = "concurrent_requests, or request_rate_per_s"
            raise contradiction("concurrent_requests", "no load was stated", accepted)
        return value


class WithinLimits(Part):
    """Latency that must hold."""

    ttft_s: Seconds | None = Field(default=None, description="limit on the time to first token [s]", examples=[0.5])
    tpot_s: Seconds | None = Field(default=None, description="limit on the time per output token [s]", examples=[0.04])
    percentile: Annotated[float, Field(ge=50, lt=100, allow_inf_nan=False), NUMBER] = Field(
        default=95, description="share of requests that must meet the limits [per cent]", examples=[99]
    )

    def limits(self) -> Limits:
        """Return the latency limits."""
        return Limits(ttft_s=self.ttft_s, tpot_s=self.tpot_s, percentile=self.percentile)


class WithConfidence(Part):
    """How sure the count must be."""

    confidence: Annotated[float, Field(ge=0.5, lt=1, allow_inf_nan=False), NUMBER] | None = Field(
        default=None,
        description="probability that what is answered keeps the limits, given the error of the basis and, of a "
        "sizing, of the sample; default: times are medians, as likely too long as too short [fraction]",
        examples=[0.9],
    )

    def slowed(self, timers: StepTimers | None) -> StepTimers | None:
        """Return times that hold with the stated probability; medians without one."""
        return slower(timers, MEDIAN if self.confidence is None else self.confidence, 0.0)


class WithHeadroom(Part):
    """What is kept free."""

    spare_replicas: Annotated[int, Field(ge=0, le=1000), WHOLE] = Field(
        default=0, description="replicas on top (N+1: 1) [count]", examples=[1]
    )
    headroom_fraction: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False), NUMBER] = Field(
        default=0.0, description="load kept free on top of the asked one [fraction]", examples=[0.2]
    )

    def headroom(self) -> Headroom:
        """Return what is kept free."""
        return Headroom(spare_replicas=self.spare_replicas, headroom_fraction=self.headroom_fraction)
