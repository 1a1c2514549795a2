"""Start-up logs of vLLM, SGLang and TensorRT-LLM.

Sources:
    vLLM 0.6 to 0.33 `v1/worker/gpu_worker.py`, `worker/worker.py`, `v1/core/kv_cache_utils.py`, `engine/core.py`;
    SGLang `managers/scheduler.py`, `model_executor/model_runner.py`, `mem_cache/memory_pool.py`;
    TensorRT-LLM `executor`, `runtime/tllmRuntime.cpp`, `batch_manager/kvCacheManager.cpp`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from service.engine.engines.registry import engine_named
from service.engine.inputs import EngineName
from service.measurements.observed import Observed
from service.measurements.patterns import MEMORY, MOST_CHARACTERS, NUMBER, Pattern, line_of, read_lines, setting

VLLM: Final[Sequence[Pattern]] = (
    line_of(r"LLM engine \(v(\d[\w.+]*)\)|API server version:? v?(\d[\w.+]*)", settings=("engine_version",)),
    line_of(r"(?:Model loading took|model weights take|Loading model weights took) " + MEMORY, memory="weight_bytes"),
    line_of(MEMORY + r" for weight", memory="weight_bytes"),
    line_of(MEMORY + r" for consumed memory", memory="weight_and_non_torch_bytes"),
    line_of(r"PyTorch activation peak memory takes " + MEMORY, memory="activation_bytes"),
    line_of(MEMORY + r" for peak activation|peak activation " + MEMORY, memory="activation_bytes"),
    line_of(r"non_torch_memory takes " + MEMORY, memory="non_torch_bytes"),
    line_of(MEMORY + r" for non-torch", memory="non_torch_bytes"),
    line_of(r"[Gg]raph capturing finished in \d+ secs?, took " + MEMORY, memory="cuda_graph_bytes"),
    line_of(MEMORY + r" for CUDAGraph", memory="cuda_graph_bytes"),
    line_of(r"CUDA graph pool memory: " + MEMORY + r" \(actual\)", memory="cuda_graph_bytes"),
    line_of(r"reserved for KV Cache is " + MEMORY, memory="kv_cache_bytes"),
    line_of(r"[Aa]vailable KV cache memory[:=] ?" + MEMORY, memory="kv_cache_bytes"),
    line_of(r"[Cc]urrent kv cache memory in use is " + MEMORY, memory="kv_cache_bytes"),
    line_of(r"weights memory: " + MEMORY, memory="weight_bytes"),
    line_of(r"torch peak memory increase: " + MEMORY, memory="activation_bytes"),
    line_of(r"non-torch forward increase memory: " + MEMORY, memory="non_torch_bytes"),
    line_of(r"available KV cache memory \(" + MEMORY, memory="kv_cache_bytes"),
    line_of(r"KV (?:cache / card |pool )?" + MEMORY, memory="kv_cache_bytes"),
    line_of(r"GPU KV cache(?: size)?(?: \(tokens\))?:? " + NUMBER, figures=("kv_cache.tokens",)),
    line_of(r"# (?:cuda|GPU) blocks: " + NUMBER, figures=("kv_cache.num_gpu_blocks",)),
    line_of(r"available Mamba cache blocks \(" + NUMBER, figures=("kv_cache.num_gpu_blocks",)),
    line_of(r"num_gpu_blocks(?: is)?[:=] ?\"?" + NUMBER, figures=("kv_cache.num_gpu_blocks",)),
    line_of(
        r"Maximum concurrency for [\d,]+ tokens(?: per request)?: " + NUMBER, figures=("kv_cache.max_concurrency",)
    ),
    line_of(r"Maximum concurrency for (\d{1,9}(?:,\d{3}){0,4}) tokens", settings=("served_tokens",)),
    line_of(r"gpu_memory_utilization \((0?\.\d+|1\.0)\)", settings=("gpu_memory_utilization",)),
    line_of(r"Desired (?:GPU memory utilization is )?\((0?\.\d+|1\.0),", settings=("gpu_memory_utilization",)),
    line_of(r"[Ff]ree memory on device \([\d.]+/" + MEMORY, memory="gpu_total_bytes"),
    line_of(r"total_gpu_memory \(" + MEMORY, memory="gpu_total_bytes"),
    line_of(r"enabled with max_num_batched_tokens=(\d+)", settings=("max_num_batched_tokens",)),
)
SGLANG: Final[Sequence[Pattern]] = (
    line_of(r"Load weight end\.(?:(?!Load weight).){0,400}?mem usage=" + MEMORY, memory="weight_bytes"),
    line_of(r"(?<!graph )mem usage=" + MEMORY, memory="weight_bytes"),
    line_of(r"#tokens: " + NUMBER, figures=("kv_cache.tokens",)),
    line_of(r"(?:max_total_num|full_layer)_tokens=" + NUMBER, figures=("kv_cache.tokens",)),
    line_of(r"K size: " + MEMORY, memory="half_of_cache_bytes"),
    line_of(r"cuda graph mem usage=" + MEMORY, memory="cuda_graph_bytes"),
)
TENSORRT_LLM: Final[Sequence[Pattern]] = (
    line_of(r"TensorRT-LLM(?: version)?:? v?(\d+\.\d[\w.]*)", settings=("engine_version",)),
    line_of(r"Loaded engine size: " + MEMORY, memory="weight_bytes"),
    line_of(r"Allocated " + MEMORY + r" for max tokens in paged KV cache \(" + NUMBER, memory="kv_cache_bytes",
            figures=("kv_cache.tokens",)),
    line_of(r"blocks in primary pool: " + NUMBER, figures=("kv_cache.num_gpu_blocks",)),
    line_of(r"(?<!\d)(\d{1,9}+) tokens per block", settings=("block_size",)),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReader:
    """What one engine's start-up log is read by."""

    engine: EngineName
    patterns: Sequence[Pattern]


READERS: Final = (
    LogReader(engine="vllm", patterns=VLLM),
    LogReader(engine="sglang", patterns=SGLANG),
    LogReader(engine="tensorrt-llm", patterns=TENSORRT_LLM),
)

# Settings as engines print their arguments: 'name': value, or name=value.
ARGUMENTS: Final = re.compile(
    r"non-default args|with config: |server_args=|ServerArgs\(|\bLLM\(|vllm serve |sglang\.launch_server"
)
NAMED: Final = re.compile(r"\b(\w+)(?:=|[\"']: ?)('[^']{1,200}'|\"[^\"]{1,200}\"|[\w.\-/]{1,200})")
FLAG: Final = re.compile(r"--([a-z][a-z-]{1,40})[ =]([^\s\\]{1,200})")
FIELDS: Final[Mapping[str, str]] = {
    "model": "model", "model_path": "model", "model_tag": "model",
    "tensor_parallel_size": "tensor_parallel_size", "tp_size": "tensor_parallel_size", "tp": "tensor_parallel_size",
    "pipeline_parallel_size": "pipeline_parallel_size", "pp_size": "pipeline_parallel_size",
    "data_parallel_size": "data_parallel_size", "dp_size": "data_parallel_size",
    "enable_expert_parallel": "expert_parallel",
    "max_model_len": "max_model_len", "max_seq_len": "max_model_len", "context_length": "max_model_len",
    "gpu_memory_utilization": "gpu_memory_utilization", "mem_fraction_static": "gpu_memory_utilization",
    "max_num_batched_tokens": "max_num_batched_tokens", "chunked_prefill_size": "max_num_batched_tokens",
    "max_num_seqs": "max_num_seqs", "max_running_requests": "max_num_seqs",
    "kv_cache_dtype": "kv_cache_dtype", "quantization": "weight_format", "block_size": "block_size",
}  # fmt: skip
UNSAID: Final = ("None", "auto", "", None)


def startup_log(reader: LogReader, lines: Sequence[tuple[int, str]]) -> Observed:
    """Return what a start-up log of one engine says.

    Raises:
        UnreadableTextError: two lines state a setting otherwise.
    """
    observed = Observed(what=f"{engine_named(reader.engine).title} start-up log", kind="start-up log")
    read_lines(observed, reader.patterns, lines)
    for place, line in lines:
        if ARGUMENTS.search(line[:2000]):
            _arguments(observed, line[:MOST_CHARACTERS], place)
    _settle(observed)
    return observed


def _arguments(observed: Observed, line: str, place: int) -> None:
    """Keep the settings of a line that prints arguments; where two name a field, the first one says it."""
    stated = [*NAMED.findall(line), *((name.replace("-", "_"), value) for name, value in FLAG.findall(line))]
    for name, text in stated:
        field, value = FIELDS.get(name), setting(text)
        if field is not None and value not in UNSAID and field not in observed.settings:
            observed.state(field, value, place)


def _settle(observed: Observed) -> None:
    """Bring what engines print into the terms that answers have."""
    served = observed.settings.pop("served_tokens", None)
    if served is not None:
        line = observed.setting_lines.pop("served_tokens")
        observed.settings["max_model_len"] = int(str(served).replace(",", ""))
        observed.setting_lines["max_model_len"] = line
    half = observed.figures.pop("half_of_cache_bytes", None)
    if half is not None:
        observed.see("kv_cache_bytes", 2 * half.value, half.line)
