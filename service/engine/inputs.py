"""What a caller fills in: GPU, layout, engine settings, load and limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from math import inf
from typing import Final, Literal, Self, TypeGuard, get_args

from service.engine.derived import Derived

EngineName = Literal["vllm", "sglang", "tensorrt-llm"]
PlainCacheDtype = Literal["auto", "bf16", "fp16", "fp8"]  # of which every element stands for itself
ScaledCacheDtype = Literal["int8_per_token_head", "fp8_per_token_head", "int4_per_token_head", "nvfp4"]
KvCacheDtype = Literal[PlainCacheDtype, ScaledCacheDtype]
DeclaredCacheDtype = Literal[PlainCacheDtype, "nvfp4"]  # by a checkpoint
SCALED_CACHES: Final[tuple[ScaledCacheDtype, ...]] = get_args(ScaledCacheDtype)
# Where layers stand that pipeline stages do not share evenly: middle stages, the last ones, or all on the last.
StageRule = Literal["middle", "last", "rest_last"]
PagePacking = Literal["packed", "by_size", "columns"]
# What goes by the number of requests beside a compressed past in SGLang: nothing, states of 128 tokens, or windows too.
CompressedPools = Literal["by_tokens", "by_request", "padded"]
StateDtype = Literal["auto", "float32", "float16", "bfloat16"]
NAMED_STATE_DTYPES: Final[tuple[StateDtype, ...]] = ("float32", "float16", "bfloat16")
SpeculativeMethod = Literal["mtp", "eagle", "eagle3", "ngram"]
Phase = Literal["both", "prefill", "decode"]
Arrival = Literal["steady", "burst", "poisson"]
LengthDistribution = Literal["fixed", "uniform", "lognormal"]
All2AllBackend = Literal["deepep"]  # through which ranks send the tokens of whole experts to each other
LoadedFormat = Literal["fp8"]  # that an engine makes while it loads
ProductLine = Literal["data-centre", "workstation", "consumer"]
Tier = Literal["secure", "community"]  # on a provider's own servers, or on anybody's
WeightFormat = Literal["bf16", "fp16", "fp8", "int8", "int4", "mxfp4", "nvfp4"]
HALF_FORMATS: Final[tuple[WeightFormat, ...]] = ("bf16", "fp16")  # of 16 bits: not quantized


def is_scaled(dtype: str | None) -> TypeGuard[ScaledCacheDtype]:
    """Return whether scales stand in the cache, beside the elements that they speak for."""
    return dtype in SCALED_CACHES


def content_key(kind: str, content: tuple[object, ...]) -> str:
    """Return a key that two values share when everything they state is the same; a written value tells all of it."""
    return sha256(f"{kind} {content!r}".encode("utf-8", "backslashreplace")).hexdigest()


class Valued:
    """Compared by a key that is derived once: equal facts are equal whoever built them, and quick to look up."""

    __slots__ = ()
    key: str

    def __eq__(self, other: object) -> bool:
        """Return whether both state the same."""
        return self is other or (type(other) is type(self) and self.key == other.key)

    def __hash__(self) -> int:
        """Return the key's hash, which text keeps."""
        return hash(self.key)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gpu(Valued):
    """One GPU type, as its driver and data sheet state it."""

    id: str
    name: str
    vendor: str
    architecture: str
    compute_capability: str | None
    memory_bytes: int  # what the driver lets a process use
    memory_bandwidth_bytes_per_s: float
    peak_flop_per_s: Mapping[str, float]  # dense, by precision: bf16, fp16, fp8, int8, fp4
    gpus_per_node: int
    scale_up_domain_gpus: int  # GPUs reachable over the fast fabric; 1 without one
    scale_up_bytes_per_s: float  # one direction, per GPU
    scale_out_bytes_per_s: float  # one direction, per GPU
    source: str = ""
    measured_as: str | None = None  # the name under which its kernels were measured; None: they were not
    driver_memory_bytes: int = 0  # what `nvidia-smi` prints, of which a process sees a little less; 0: as much
    joined_gpus: int = field(init=False, repr=False, compare=False)  # by a server or its fabric; no network is passed
    key: str = field(init=False, repr=False)
    derived: Derived = field(default_factory=Derived, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Derive the key from everything stated, and what is joined."""
        peaks = tuple(sorted(self.peak_flop_per_s.items()))
        others = tuple(
            getattr(self, stated.name) for stated in fields(self) if stated.init and stated.name != "peak_flop_per_s"
        )
        object.__setattr__(self, "key", content_key("gpu", (peaks, others)))
        object.__setattr__(self, "joined_gpus", max(self.gpus_per_node, self.scale_up_domain_gpus))


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How one replica is spread over GPUs."""

    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1
    expert_parallel: bool = False
    decode_context_parallel_size: int = 1  # tensor-parallel ranks that hold the tokens of one cache in turn
    all2all_backend: All2AllBackend | None = None  # None: the engine's own way
    enable_two_batch_overlap: bool = False  # two, of which one computes while the other's tokens are on their way
    gpus_per_replica: int = field(init=False, repr=False, compare=False)  # TP x PP x DP

    def __post_init__(self) -> None:
        """Count the GPUs once: every comparison asks for them."""
        gpus = self.tensor_parallel_size * self.pipeline_parallel_size * self.data_parallel_size
        object.__setattr__(self, "gpus_per_replica", gpus)

    @property
    def redundant_experts(self) -> int:
        """Return the experts that a backend keeps twice, so that load is even: one on each rank. [count].

        LMSYS' prefill pools of 32 H100 keep 32 (github.com/sgl-project/sglang/issues/6017).
        """
        return 0 if self.all2all_backend is None else self.tensor_parallel_size * self.data_parallel_size


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """The serving engine's own settings, resolved: no value is missing here."""

    gpu_memory_utilization: float  # [fraction]
    kv_cache_dtype: KvCacheDtype
    max_model_len: int  # [tokens]
    max_num_batched_tokens: int  # [tokens]
    max_num_seqs: int
    block_size: int | None = None  # [tokens]; None lets the engine choose
    kv_cache_memory_bytes: int | None = None  # the pool is given, not derived
    is_share_open: bool = False  # nobody states the share, and the engine's own depends on what runs
    is_checkpoints_cache_dtype: bool = False  # the checkpoint itself, or the engine for the GPU, declares it
    enable_prefix_caching: bool = True
    enforce_eager: bool = False
    is_text_only: bool = False  # towers for images and sound are not loaded
    max_loras: int = 0  # adapters in one batch; 0 without LoRA
    max_lora_rank: int = 16
    num_speculative_tokens: int = 0  # drafted per step
    speculative_method: SpeculativeMethod | None = None  # who drafts them; None: no layer of its own
    swa_full_tokens_ratio: float | None = None  # SGLang: slots of windowed layers to those of full ones [fraction]
    states_per_request: int = 5  # SGLang: of recurrent layers' pool, where it also keeps states of prefixes
    caps_windows: bool = True  # SGLang without prefixes: of windowed pools, by the requests that may run
    page_size: int = 1  # SGLang: unless stated, or wanted by a layer's kernels [tokens]
    counts_stated_drafts: bool = True  # SGLang: drafts of which configs do not state how many keep a cache of their own
    pads_states: bool = True  # SGLang: one of recurrent layers' pool is no request's
    compressed_pools: CompressedPools = "padded"
    stage_rule: StageRule = "middle"  # of an engine with a pool for each kind of layer
    mamba_cache_dtype: StateDtype = "auto"  # of recurrent states, matrices and convolutions
    mamba_ssm_cache_dtype: StateDtype = "auto"  # of their matrices alone


@dataclass(slots=True)
class Alike:
    """The numbers of users between which what was chosen stays so, and nothing else takes fewer replicas."""

    fewest: int = 1
    most: float = inf

    def looked_at(self, fewest: int) -> None:
        """Take note of a count of replicas that is no smaller from so many users on."""
        self.fewest = max(self.fewest, fewest)

    def chosen(self, most: int) -> None:
        """Take note of replicas that carry so many users."""
        self.most = min(self.most, most)

    def join(self, other: "Alike") -> None:
        """Take note of what another took note of."""
        self.fewest, self.most = max(self.fewest, other.fewest), min(self.most, other.most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What users send. Exactly one of concurrency and rate is set."""

    concurrent_requests: int | None
    request_rate_per_s: float | None
    input_tokens: int  # mean
    output_tokens: int  # mean
    request_duration_s: float | None = None  # seconds a request lives, where the caller states it
    prefix_cache_hit_fraction: float = 0.0
    length_distribution: LengthDistribution = "uniform"
    length_variation_fraction: float = 0.1  # uniform: to either side; log-normal: standard deviation over mean
    burstiness: float = 1.0  # of arrivals: 1 is Poisson, below comes in bursts, above is more even
    is_spread: bool = True  # over replicas, which get a burst in parts; False: one replica gets all of it
    speculative_acceptance_fraction: float | None = None  # chance that a draft is accepted; None: nothing is drafted
    num_prompts: int | None = None  # of a benchmark, the first and the last included; None: a steady state
    arrival: Arrival | None = None  # how prompts come; None: steady, or as a benchmark of the same terms sends them
    phase: Phase = "both"  # which part of a request a replica serves
    sent_bytes_per_s: float | None = None  # at which each GPU sends the cache of a prompt on; None: it stays
    alike: Alike | None = field(default=None, repr=False, compare=False)  # takes note, where somebody wants to know


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Latency that must hold at a percentile of requests."""

    ttft_s: float | None = None
    tpot_s: float | None = None
    percentile: float = 95.0

    @property
    def are_stated(self) -> bool:
        """Return whether anybody limits latency."""
        return self.ttft_s is not None or self.tpot_s is not None

    def breakable(self, load: Load) -> Self:
        """Return the limits that requests of a load may break: answers of one token have no time per further one."""
        has_further = load.output_tokens != 1 or load.length_distribution == "lognormal"
        return self if has_further else replace(self, tpot_s=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedLayout:
    """The parts of the layout that the caller fixed; None leaves the choice to us."""

    tensor_parallel_size: int | None = None
    pipeline_parallel_size: int | None = None
    data_parallel_size: int | None = None
    expert_parallel: bool | None = None
    decode_context_parallel_size: int | None = None  # None: spread only where that is better

    @classmethod
    def of(cls, layout: Layout) -> Self:
        """Return what states exactly this layout."""
        return cls(
            tensor_parallel_size=layout.tensor_parallel_size,
            pipeline_parallel_size=layout.pipeline_parallel_size,
            data_parallel_size=layout.data_parallel_size,
            expert_parallel=layout.expert_parallel,
            decode_context_parallel_size=layout.decode_context_parallel_size,
        )

    def pinned_to(self, layout: Layout) -> Self:
        """Return what states this layout, and leaves open over how many ranks its caches are spread where this does."""
        return replace(type(self).of(layout), decode_context_parallel_size=self.decode_context_parallel_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """What is kept free on top of the asked load."""

    spare_replicas: int = 0
    headroom_fraction: float = 0.0
