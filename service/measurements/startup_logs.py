"""Start-up logs of vLLM, SGLang and TensorRT-LLM.

Sources:
    vLLM 0.6 to 0.33 `v1/worker/gpu_worker.py`, `worker/worker.py`, `v1/core/kv_cache_utils.py`, `engine/core.py`;
    SGLang 0.5.10 and 0.5.23 `managers/scheduler.py`, `model_executor/model_runner.py`, `mem_cache/memory_pool.py`
    (`_finalize_allocation_log`, `MambaPool`), `mem_cache/swa_memory_pool.py`, `model_executor/pool_configurator.py`
    (`DSV4PoolConfigurator`);
    TensorRT-LLM `_torch/pyexecutor/_util.py` (`configure_kv_cache_capacity`), `executor`,
    `runtime/tllmRuntime.cpp`, `batch_manager/kvCacheManager.cpp`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from service.catalog.measurement_rows import Setting
from service.engine.engines.registry import engine_named
from service.engine.inputs import EngineName
from service.measurements.arguments import keep_arguments
from service.measurements.drafted import doubt_drafter, settle_drafts
from service.measurements.observed import Doubt, Observed
from service.measurements.patterns import LEFT, MEMORY, MOST_CHARACTERS, NUMBER, Pattern, line_of, read_lines
from service.measurements.pools import MOVED, doubt_otherwise, doubt_overridden, doubt_refused, doubt_tokens
from service.measurements.starts import Begins

VLLM: Final[Sequence[Pattern]] = (
    line_of(
        r"LLM engine \(v(\d[\w.+]*)\)|(?:API )?server version:? v?(\d[\w.+]*)|\u2588 {1,4}version {1,4}(\d[\w.+]*)",
        settings=("engine_version",),
    ),
    line_of(
        r"(?:Model loading took|model weights take|Loading model weights took) {1,9}" + MEMORY,
        memory="weight_bytes",
        is_largest=True,
    ),
    line_of(MEMORY + r" for weight", memory="weight_bytes"),
    line_of(MEMORY + r" for consumed memory", memory="weight_and_non_torch_bytes"),
    line_of(r"PyTorch activation peak memory (?:takes)? {0,9}" + MEMORY, memory="activation_bytes"),
    line_of(MEMORY + r" for peak activation|peak activation " + MEMORY, memory="activation_bytes"),
    line_of(r"non_torch_memory (?:takes)? {0,9}" + MEMORY, memory="non_torch_bytes"),
    line_of(MEMORY + r" for non-torch", memory="non_torch_bytes"),
    line_of(r"[Gg]raph capturing finished in \d+ secs?, took " + MEMORY, memory="cuda_graph_bytes"),
    line_of(MEMORY + r" for CUDAGraph", memory="cuda_graph_bytes"),
    line_of(r"CUDA graph pool memory: " + MEMORY + r" \(actual\)", memory="cuda_graph_bytes"),
    line_of(r"reserved for KV Cache is " + MEMORY, memory="kv_cache_bytes"),
    line_of(r"reserved " + MEMORY + r" memory for KV Cache", memory="kv_cache_bytes"),
    line_of(r"total_gpu_memory(?:=| {1,9})" + MEMORY, memory="gpu_total_bytes"),
    line_of(r"available_kv_cache_memory {1,9}" + MEMORY, memory="kv_cache_bytes", is_smallest=True),
    line_of(r"\bgpu_memory_utilization {1,9}(0?\.\d+|1\.0)", settings=("gpu_memory_utilization",)),
    line_of(r"non_torch_memory=" + MEMORY, memory="non_torch_bytes"),
    line_of(r"kv_cache_size=" + MEMORY, memory="kv_cache_bytes"),
    line_of(r"kv_cache_size=.{0,40}gpu_memory_utilization=(0?\.\d+|1\.0)", settings=("gpu_memory_utilization",)),
    line_of(r"The current --gpu-memory-utilization=(0?\.\d+|1\.0)", settings=("gpu_memory_utilization",)),
    line_of(r"[Aa]vailable KV cache memory[:=] ?" + LEFT, memory="kv_cache_bytes", is_smallest=True),
    line_of(
        r"[Cc]urrent kv cache memory in use is " + NUMBER + r" ?(GiB|bytes)", memory="kv_cache_bytes", is_smallest=True
    ),
    line_of(r"weights memory: " + MEMORY, memory="weight_bytes"),
    line_of(r"torch peak memory increase: " + MEMORY, memory="activation_bytes"),
    line_of(r"non-torch forward increase memory: " + MEMORY, memory="non_torch_bytes"),
    line_of(r"available KV cache memory \(" + MEMORY, memory="kv_cache_bytes"),
    line_of(r"KV (?:cache / card |pool )?" + MEMORY, memory="kv_cache_bytes"),
    line_of(r"GPU KV cache(?: size)?(?: \(tokens\))?:? " + NUMBER, figures=("kv_cache.tokens",), is_smallest=True),
    line_of(r"# (?:cuda|GPU) blocks: " + NUMBER, figures=("kv_cache.num_gpu_blocks",)),
    line_of(r"available Mamba cache blocks \(" + NUMBER, figures=("kv_cache.num_gpu_blocks",)),
    line_of(r"(?<!Overriding )num_gpu_blocks(?: is)?[:=] ?\"?" + NUMBER, figures=("kv_cache.num_gpu_blocks",)),
    line_of(
        r"Maximum concurrency for [\d,]+ tokens(?: per request)?: " + NUMBER,
        figures=("kv_cache.max_concurrency",),
        is_smallest=True,
    ),
    line_of(r"Maximum concurrency for (\d{1,9}(?:,\d{3}){0,4}) tokens", settings=("served_tokens",)),
    line_of(r"gpu_memory_utilization \((0?\.\d+|1\.0)\)", settings=("gpu_memory_utilization",)),
    line_of(r"[Dd]esired (?:GPU memory utilization (?:is )?)?\((0?\.\d+|1\.0),", settings=("gpu_memory_utilization",)),
    line_of(r"[Ff]ree memory on device (?:\w{1,9}:\d{1,3} )?\([\d.]+/" + MEMORY, memory="gpu_total_bytes"),
    line_of(r"total_gpu_memory \(" + MEMORY, memory="gpu_total_bytes"),
    line_of(r"Total CPU offloaded parameters: " + NUMBER, figures=(MOVED,), is_largest=True),
    # A start that failed: what it had, and what it was asked to hold.
    line_of(r"stored in KV cache \(" + NUMBER + r"\)", figures=("kv_cache.tokens",)),
    line_of(r"estimated maximum model length is (\d{1,9})", figures=("kv_cache.estimated_max_model_len",)),
    line_of(r"max seq len \((\d{1,9})\)", settings=("max_model_len",)),
    # vLLM 0.11.2 to 0.14 say it of a configuration of defaults first, then of the server: `config/scheduler.py`.
    line_of(r"enabled with max_num_batched_tokens=(\d+)", settings=("max_num_batched_tokens",), is_last=True),
)
# Lines that say of something else what it took; where weights were loaded is said by all others.
OTHERS: Final = r"^(?!.*(?:[Cc]apture |Memory baseline|distributed ends)).*?(?<!graph )"
SGLANG: Final[Sequence[Pattern]] = (
    line_of(OTHERS + r"mem usage=" + MEMORY, memory="weight_bytes", is_largest=True),
    line_of(r"#tokens: " + NUMBER, figures=("kv_cache.tokens",)),
    line_of(r"(?:max_total_num|full_layer)_tokens=" + NUMBER, figures=("kv_cache.tokens",)),
    line_of(r"\bmax_total_num_tokens=.{0,200}?\bcontext_len=(\d{1,9})", settings=("served_tokens",)),
    line_of(r"\bmax_total_num_tokens=.{0,200}?\bchunked_prefill_size=(\d{1,9})", settings=("chunk_tokens",)),
    line_of(r"\bK size: " + MEMORY, memory="keys_bytes", is_largest=True),
    line_of(r"\bV size: " + MEMORY, memory="values_bytes", is_largest=True),
    line_of(r"\bKV size: " + MEMORY, memory="keys_bytes", is_largest=True),
    line_of(r"\bconv_state size: " + MEMORY, memory="convolutions_bytes"),
    line_of(r"\bssm_state size: " + MEMORY, memory="states_bytes"),
    line_of(r"SWAKVPool mem usage: " + MEMORY, memory="kv_cache_bytes"),
    # DeepSeek V4: what is raw holds what a part of it is fixed for, as the room of versions that fix none does.
    line_of(r"DS[Vv]4 memory calculation: .{0,120}?\b(?:raw_)?available_bytes=" + MEMORY, memory="kv_cache_bytes"),
    line_of(r"DS[Vv]4 .{0,300}?\bfull(?:_token)?=" + NUMBER, figures=("kv_cache.tokens",)),
    line_of(r"cuda graph mem usage=" + MEMORY, memory="cuda_graph_bytes"),
    line_of(r"[Cc]apture [^=]{0,60}?end\..{0,400}?mem usage=" + MEMORY, memory="cuda_graph_bytes", is_largest=True),
)
SAMPLER: Final = "Using FlashInfer for top-p & top-k sampling"  # vLLM `v1/sample/ops/topk_topp_sampler.py`
# What an engine says of its own accord, read where no argument says it.
LOADS: Final = re.compile(r"Starting to load model (\S{1,200}?)/?\.\.\.")
BANNER: Final = re.compile(r"\u2588 {1,4}model {1,6}(\S{1,200})")  # vLLM 0.17 and newer `entrypoints/utils.py`
DEVICE: Final = re.compile(r"\bdevice_name=((?:NVIDIA|AMD)_\w{1,60})(?=\.json|,)")
RANK: Final = re.compile(
    r"\brank \d{1,5} in world size (\d{1,5}) is assigned as DP rank (\d{1,5}), PP rank (\d{1,5}), "
    r"(?:\w{1,5} rank \d{1,5}, )?TP rank (\d{1,5})"
)
PARALLEL: Final = ("data_parallel_size", "pipeline_parallel_size", "tensor_parallel_size")
# What engines say of a setting, where no argument states it; `single_fraction` is a share in single precision.
UNLESS_STATED: Final = (
    ("chunk_tokens", "max_num_batched_tokens"),
    ("most_requests", "max_num_seqs"),
    ("single_fraction", "gpu_memory_utilization"),
)
SINGLE_DIGITS: Final = 6
POOLS: Final = ("keys_bytes", "values_bytes", "convolutions_bytes", "states_bytes")
TENSORRT_LLM: Final[Sequence[Pattern]] = (
    line_of(r"TensorRT[- ]LLM(?: version)?:? v?(\d+\.\d[\w.]*)", settings=("engine_version",)),
    line_of(r"Loaded engine size: " + MEMORY, memory="weight_bytes"),
    line_of(r"[Uu]ses? " + MEMORY + r" for model weights", memory="weight_bytes", is_largest=True),
    line_of(r"Allocated " + MEMORY + r" for max tokens in paged KV cache \(" + NUMBER, memory="kv_cache_bytes",
            figures=("kv_cache.tokens",)),
    line_of(r"Allocate " + NUMBER + r" (bytes) for k/v cache", memory="kv_cache_bytes"),
    line_of(r"Using " + NUMBER + r" tokens in paged KV cache", figures=("kv_cache.tokens",)),
    line_of(r"after loading model weights \(inside torch\)[\w ]{0,40}: " + MEMORY, memory="inside_torch_bytes",
            is_largest=True),
    line_of(r"allocated during inference \(inside torch\)[\w ]{0,40}: " + MEMORY, memory="activation_bytes"),
    line_of(r"available KV cache memory when calculating max tokens: " + MEMORY, memory="kv_cache_bytes"),
    line_of(r"Estimated max memory in KV cache ?: " + MEMORY, memory="kv_cache_bytes"),
    line_of(r"device total memory " + MEMORY, memory="gpu_total_bytes"),
    line_of(r"blocks in (?:KV cache )?primary pool: " + NUMBER, figures=("kv_cache.num_gpu_blocks",)),
    line_of(r"(?<!\d)(\d{1,9}+) tokens per block|[Nn]umber of tokens per block: (\d{1,9})", settings=("block_size",)),
    # `_torch/pyexecutor/_util.py`: of a pool to measure with first, then of the one that serves.
    line_of(r"\bmax_seq_len=(\d{1,9}), max_num_requests=\d{1,9}, max_num_tokens=(\d{1,9})",
            settings=("served_tokens", "chunk_tokens"), is_last=True),
    line_of(r"\bmax_num_tokens=\d{1,9}, max_batch_size=(\d{1,9})", settings=("most_requests",), is_last=True),
    line_of(r", fraction is set (0?\.\d{1,18}|1\.0)", settings=("single_fraction",), is_last=True),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReader:
    """What one engine's start-up log is read by."""

    engine: EngineName
    patterns: Sequence[Pattern]
    command: re.Pattern[str]  # that starts its server
    begins: Sequence[Begins]  # what its starts begin with, the first of them that a log has
    arguments: re.Pattern[str] | None = None  # that a server prints, of which a result beside it may be
    release: Sequence[Pattern] = ()  # the same of its version


READERS: Final = (
    LogReader(
        engine="vllm", patterns=VLLM, command=re.compile(r"\bvllm serve |-m vllm\.entrypoints"),
        begins=(Begins(re.compile(r"API server version")), Begins(re.compile(r"LLM engine \(v\d"))),
        arguments=re.compile(r"\bnon-default args: \{"),
        release=(
            line_of(
                r"vLLM API server version v?(\d[\w.+]*)|LLM engine \(v(\d[\w.+]*)\)", settings=("engine_version",)
            ),
        ),
    ),
    LogReader(
        engine="sglang", patterns=SGLANG, command=re.compile(r"\bsglang\.launch_server\b|\bsglang serve "),
        begins=(Begins(re.compile(r"\bserver_args=")),),
        arguments=re.compile(r"\bserver_args="),
    ),
    LogReader(
        engine="tensorrt-llm", patterns=TENSORRT_LLM, command=re.compile(r"\btrtllm-serve "),
        begins=(Begins(re.compile(r"TensorRT[- ]LLM version: "), is_single=False),),
    ),
)  # fmt: skip


def startup_log(reader: LogReader, lines: Sequence[tuple[int, str]]) -> Observed:
    """Return what a start-up log of one engine says.

    Raises:
        UnreadableTextError: two lines state a setting otherwise.
    """
    observed = Observed(what=f"{engine_named(reader.engine).title} start-up log", kind="start-up log")
    read_lines(observed, reader.patterns, lines)
    keep_arguments(observed, reader.engine, lines)
    _keep_names(observed, lines)
    _keep_ranks(observed, lines)
    doubt_overridden(observed, lines)
    doubt_refused(observed, lines)
    doubt_drafter(observed)
    observed.sampler_line = next((place for place, line in lines if SAMPLER in line[:MOST_CHARACTERS]), 0)
    settle(observed)
    return observed


def _keep_names(observed: Observed, lines: Sequence[tuple[int, str]]) -> None:
    """Keep the model that is loaded and the device whose kernels are looked for, where each is only one.

    Source:
        vLLM 0.6 to 0.33 `worker/model_runner.py`, `v1/worker/gpu_model_runner.py`; `fused_moe/fused_moe.py`
        (`get_config_file_name`: the driver's name of a device, with underscores).
    """
    for field, pattern in (("model", LOADS), ("model", BANNER), ("gpu", DEVICE)):
        said = [(match[1], place) for place, line in lines if (match := pattern.search(line[:MOST_CHARACTERS]))]
        if field not in observed.settings and len({name for name, _ in said}) == 1:
            name, place = said[0]
            observed.state(field, name.replace("_", " ") if pattern is DEVICE else name, place)


def _keep_ranks(observed: Observed, lines: Sequence[tuple[int, str]]) -> None:
    """Keep how ranks are laid out, where enough of them tell it.

        world size = (1 + highest DP rank) x (1 + highest PP rank) x (1 + highest TP rank)

    The first rank alone does not say in which way its world is shared.

    Source:
        vLLM 0.8 to 0.33 `distributed/parallel_state.py` (`initialize_model_parallel`).
    """
    said = [(match, place) for place, line in lines if (match := RANK.search(line[:MOST_CHARACTERS]))]
    worlds = {int(match[1]) for match, _ in said}
    sizes = [1 + max((int(match[group]) for match, _ in said), default=0) for group in (2, 3, 4)]
    if any(field in observed.settings for field in PARALLEL) or len(worlds) != 1:
        return
    if worlds != {prod(sizes)}:
        told = f"line {said[0][1]} tells of {max(worlds)} ranks, and nothing of how they are laid out"
        observed.doubts.append(Doubt(sentence=f"{told}: state tensor_parallel_size", fields=PARALLEL))
        return
    for field, size in zip(PARALLEL, sizes, strict=True):
        if size > 1:
            observed.state(field, size, said[-1][1])


def settle(observed: Observed) -> None:
    """Bring what engines print into the terms that answers have."""
    if not isinstance(observed.settings.get("kv_cache_memory_bytes"), int):
        observed.settings.pop("kv_cache_memory_bytes", None)  # `4GiB`, which its tool reads
    served = observed.settings.get("served_tokens")
    if served is not None:
        _renamed(observed, "served_tokens", "max_model_len", int(str(served).replace(",", "")))
    for name, field in UNLESS_STATED:
        told = observed.settings.get(name)
        if told is not None and field not in observed.settings:
            _renamed(observed, name, field, round(told, SINGLE_DIGITS) if isinstance(told, float) else told)
        _taken(observed, name)
    if observed.settings.get("forgets_prefixes") is not None:
        _renamed(observed, "forgets_prefixes", "enable_prefix_caching", not observed.settings["forgets_prefixes"])
    _settle_ranks(observed)
    # After the first steps: what they left lies beside the weights, which TensorRT-LLM since 0.20 says alone as well.
    inside = observed.figures.pop("inside_torch_bytes", None)
    if inside is not None and "weight_bytes" not in observed.figures:
        observed.see("weight_bytes", inside.value, inside.line)
    doubt_tokens(observed)
    doubt_otherwise(observed)
    parts = [observed.figures.pop(name) for name in POOLS if name in observed.figures]
    if parts and "kv_cache_bytes" not in observed.figures:
        observed.see("kv_cache_bytes", sum(part.value for part in parts), parts[0].line)
    settle_drafts(observed)


def _settle_ranks(observed: Observed) -> None:
    """Count ranks and requests as answers do: SGLang counts copies of the attention within them.

    Source:
        SGLang 0.5.23 `server_args.py` (`enable_dp_attention`), `layers/dp_attention.py`, `tp_worker.py`
        (`max_running_requests // dp_size`).
    """
    ranks, copies = (observed.settings.get(f"{kind}_parallel_size") for kind in ("tensor", "data"))
    if _taken(observed, "shares_experts") and isinstance(ranks, int) and isinstance(copies, int):
        observed.settings["tensor_parallel_size"] = max(ranks // max(copies, 1), 1)
        if isinstance(requests := observed.settings.get("max_num_seqs"), int):
            observed.settings["max_num_seqs"] = max(requests // max(copies, 1), 1)
    line = observed.setting_lines.get("expert_ranks", 1)
    experts = _taken(observed, "expert_ranks")
    if isinstance(experts, int) and experts > 1 and "expert_parallel" not in observed.settings:
        observed.state("expert_parallel", True, line)


def _taken(observed: Observed, name: str) -> Setting | None:
    """Return a setting that is none of an answer's, and forget it."""
    observed.setting_lines.pop(name, None)
    return observed.settings.pop(name, None)


def _renamed(observed: Observed, name: str, field: str, value: Setting) -> None:
    """State what an engine says by another name."""
    observed.setting_lines[field] = observed.setting_lines[name]
    observed.settings[field] = value
    _taken(observed, name)
