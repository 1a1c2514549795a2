"""The few constants that were fitted on published measurements, read from `data/calibration.yaml`."""

from functools import lru_cache
from importlib.resources import files
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field

from service.engine.derived import derived
from service.engine.inputs import EngineName, Gpu
from service.engine.layers import Architecture
from service.performance.links import published_pcie
from service.performance.roofline import Efficiencies
from service.performance.tables import Factors
from service.performance.unpacked import unpacked_fraction

ANY = "*"
SPARSE = "-sparse"  # attention to picked tokens; where nobody measured it, as attention to all of them
SPREAD = "-spread"  # experts dealt out whole to ranks that attend together; where nobody measured it, as split ones
BESIDE = "roofline beside kernels"  # the basis of judged runs that measured kernels answer
MOST_ERROR = 4.0  # beyond this nothing is known but an order of magnitude
SOURCE = "fitted on published serving runs; service/performance/data/calibration.yaml"
# Cards share a name with data centre GPUs, and neither tensor cores nor memory: NVIDIA's tuning guides for
# compute capability 8.6 and 12.0. GB10 has a card's cores, and neither its memory nor its power: it reads at a seventh
# of a card's rate what a processor writes too, within 140 W for both. What a card's kernels lose beside their bytes is
# no share of that: carried over, GB10 would read all of its 273 GB/s, where 210 to 235 were published
# (github.com/djangodevreng/dgx-spark-benchmarks).
CARDS = {"8.6": "-card", "12.0": "-card", "12.1": "-unified"}
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Fit(_Entry):
    """What a row was fitted on, and judged on; 0 where it is the median of other rows."""

    runs: int
    judged_on_runs: int
    date: str


class FactorsEntry(_Entry):
    """The constants of `Factors`."""

    decode_factor: Amount
    small_prefill_factor: Amount
    large_prefill_factor: Amount
    step_overhead_s: Amount
    sequence_overhead_s: Amount
    mixed_overhead_s: Amount
    request_overhead_s: Amount
    tokenizer_s_per_token: Amount
    layer_launch_s: Amount = 0.0


class Row(_Entry):
    """Constants for what matches; `*` matches everything."""

    basis: str
    engine: str
    rules_versions: str  # a prefix of the rules' version
    gpu_architecture: str
    kernels: str
    factors: FactorsEntry
    expected_error_fraction: Amount
    pace_error_fraction: Amount | None = None  # of time per output token alone; None: the expected error
    fit: Fit

    def matches(self, basis: str, engine: str, rules_version: str, gpu_architecture: str, kernels: str) -> bool:
        """Return whether this row speaks for a deployment."""
        return (
            self.basis in (ANY, basis)
            and self.engine in (ANY, engine)
            and (self.rules_versions == ANY or rules_version.startswith(self.rules_versions))
            and self.gpu_architecture in (ANY, gpu_architecture, family_of(gpu_architecture))
            and self.kernels in (ANY, *likenesses(kernels))
        )

    def knowledge(self, kernels: str) -> float:
        """Return the runs of a class of kernels that the row was fitted on, over their error; 0 without any."""
        return self.fit.runs / self.expected_error_fraction if self.kernels == kernels else 0.0

    def less_sure(self, more: float) -> "Row":
        """Return the same constants, with more error on top of their own. [fraction]."""

        def less_sure(fraction: float) -> float:
            return min(round((1 + fraction) * (1 + more) - 1, 3), MOST_ERROR)

        pace = self.pace_error_fraction
        errors = {
            "expected_error_fraction": less_sure(self.expected_error_fraction),
            "pace_error_fraction": None if pace is None else less_sure(pace),
        }
        return self.model_copy(update=errors)


class EfficienciesEntry(_Entry):
    """The constants of `Efficiencies`, for one class of GPUs."""

    gpu_architecture: str
    compute_fraction: Annotated[float, Field(gt=0, le=1)]
    bandwidth_fraction: Annotated[float, Field(gt=0, le=1)]
    attention_compute_fraction: Annotated[float, Field(gt=0, le=1)]
    interconnect_fraction: Annotated[float, Field(gt=0, le=1)]
    layer_latency_s: Amount
    all_reduce_latency_s: Amount
    is_over_pcie: bool = False  # both, as its GPUs have no fabric, and messages go another library's way
    samples: int
    median_error_fraction: Amount


class LeftOut(_Entry):
    """How fits did on runs of a source that they had not seen, by the median and the ninth of ten figures."""

    basis: str
    source: str
    engine: str
    gpu: str
    quantity: str
    figures: int
    median_error_fraction: Amount
    p90_error_fraction: Amount
    within_expected_fraction: Amount


class _File(_Entry):
    source: str
    efficiencies: tuple[EfficienciesEntry, ...]
    left_out: tuple[LeftOut, ...] = ()
    rows: tuple[Row, ...]


def likenesses(kernels: str) -> tuple[str, ...]:
    """Return the classes of kernels that speak for one, the most specific first.

    >>> likenesses("experts-sparse-fp8-spread")
    ('experts-sparse-fp8-spread', 'experts-sparse-fp8', 'experts-fp8-spread', 'experts-fp8', 'experts')
    """
    plain = kernels.replace(SPARSE, "")
    names = (
        kernels,
        kernels.removesuffix(SPREAD),
        plain,
        plain.removesuffix(SPREAD),
        kernels.split("-", maxsplit=1)[0],
    )
    return tuple(dict.fromkeys(names))


def generation_of(gpu: Gpu) -> str:
    """Return the generation of a GPU's cores; with a card's tensor cores, of its own by the memory beside them."""
    return f"{gpu.architecture}{CARDS.get(gpu.compute_capability or '', '')}"


def family_of(generation: str) -> str:
    """Return the family of a generation: its name without its number.

    >>> family_of("cdna3"), family_of("hopper")
    ('cdna', 'hopper')
    """
    return generation.rstrip("0123456789.")


@derived(1)
def layer_class(architecture: Architecture) -> str:
    """Return what of the class of a model's kernels its layers decide."""
    recurrent = [mixer for mixer in architecture.mixers if mixer.is_recurrent]
    states = "-delta" if any(mixer.chunks_states for mixer in recurrent) else "-recurrent" if recurrent else ""
    kinds = {need.kind for mixer in architecture.mixers for need in mixer.kernel_needs}
    picks = SPARSE if "sparse" in kinds else ""
    return f"{'experts' if architecture.has_experts else 'dense'}{states}{picks}"


def has_own_efficiencies(generation: str) -> bool:
    """Return whether efficiencies were fitted on kernels of a generation, and not of any GPU."""
    return any(row.gpu_architecture == generation for row in _file().efficiencies)


def row_for(basis: str, engine: str, rules_version: str, gpu_architecture: str, kernels: str) -> Row:
    """Return the first row that matches; the file lists the most specific first and ends with one for everything."""
    return next(row for row in _file().rows if row.matches(basis, engine, rules_version, gpu_architecture, kernels))


def fitted_rows() -> tuple[Row, ...]:
    """Return every row of the file."""
    return _file().rows


def left_out() -> tuple[LeftOut, ...]:
    """Return how fits did on what they had not seen."""
    return _file().left_out


def factors_of(row: Row) -> Factors:
    """Return the constants of a row."""
    return Factors(**row.factors.model_dump())


@derived(16)
def efficiencies_for(gpu: Gpu, engine: EngineName) -> Efficiencies:
    """Return what an engine's kernels reach on a GPU's generation, or on any GPU."""
    rows = _file().efficiencies
    row = next(each for each in rows if each.gpu_architecture in (ANY, generation_of(gpu), gpu.architecture))
    return Efficiencies(
        compute_fraction=row.compute_fraction,
        bandwidth_fraction=row.bandwidth_fraction,
        unpacked_compute_fraction=unpacked_fraction(engine, gpu, row.compute_fraction),
        attention_compute_fraction=row.attention_compute_fraction,
        interconnect_fraction=row.interconnect_fraction,
        layer_latency_s=row.layer_latency_s,
        all_reduce_latency_s=row.all_reduce_latency_s,
        pcie=None if row.is_over_pcie else published_pcie(),
        experts_spread=True,
        exchanges=True,
    )


@lru_cache(maxsize=1)
def _file() -> _File:
    text = files("service.performance").joinpath("data/calibration.yaml").read_text(encoding="utf-8")
    return _File.model_validate(yaml.load(text, Loader=yaml.CSafeLoader))
