"""What `trtllm-bench` prints: a label, a colon and a figure a line, under titles.

Sources:
    TensorRT-LLM `bench/dataclasses/reporting.py` (`report_statistics`), and as people publish it:
    https://github.com/NVIDIA/TensorRT-LLM/pull/7104, https://github.com/NVIDIA/TensorRT-LLM/issues/6294.
"""

import re
from collections.abc import Mapping
from typing import Final

from service.engine.patience import go_on
from service.measurements.keeping import MS, Lines, assume_at_once, check_single, keep_load, put, state
from service.measurements.observed import Observed
from service.measurements.patterns import number

TITLE: Final = re.compile(r"^[=\s]*PERFORMANCE OVERVIEW\b")
LINE: Final = re.compile(r"^\s*([A-Za-z\[][\w .()/\]\[-]{1,70}?)\s*:\s+(\S{1,200})\s*$")
CELLS: Final = re.compile(r"[ \t|]+$")  # of a spreadsheet that a line was copied from
GAPS: Final = re.compile(r" {2,9}")
VALUE: Final = re.compile(r"\d[\d,]{0,18}(?:\.\d{1,9})?%?")
SETTINGS: Final[Mapping[str, str]] = {
    "Model": "model", "TensorRT-LLM Version": "engine_version", "TensorRT LLM Version": "engine_version",
    "TP Size": "tensor_parallel_size", "PP Size": "pipeline_parallel_size",
    "Max Runtime Batch Size": "max_num_seqs", "Max Runtime Tokens": "max_num_batched_tokens",
    "Number of requests": "num_prompts", "Average Input Length (tokens)": "input_tokens",
    "Average Output Length (tokens)": "output_tokens",
}  # fmt: skip
NAMES: Final = ("model", "engine_version")
# What is stored of weights and cache; "None" and "auto" leave it to the checkpoint.
FORMATS: Final[Mapping[str, str]] = {"Quantization": "weight_format", "KV Cache Dtype": "kv_cache_dtype"}
BEHIND: Final = re.compile(r"_(?:block_scales|pb_wo|per_channel_per_token|awq)$")  # how, not how many bits
MEMORY: Final = "KV Memory Percentage"
FIGURES: Final[Mapping[str, tuple[str, float]]] = {
    "Request Throughput (req/sec)": ("requests_per_s", 1.0),
    "Total Output Throughput (tokens/sec)": ("output_tokens_per_s", 1.0),
    "Average request latency (ms)": ("end_to_end_s.mean", MS),
    "Average time-to-first-token [TTFT] (ms)": ("ttft_s.mean", MS),
    "Average time-per-output-token [TPOT] (ms)": ("tpot_s.mean", MS),
    **{
        f"[{theirs}] {statistic}": (f"{ours}.{name}", MS)
        for theirs, ours in (("Latency", "end_to_end_s"), ("TTFT", "ttft_s"), ("TPOT", "tpot_s"))
        for statistic, name in (("AVERAGE", "mean"), ("P50", "p50"), ("P95", "p95"), ("P99", "p99"))
    },
}


def overview(lines: Lines) -> Observed | None:
    """Return what trtllm-bench printed; None where it did not.

    Raises:
        UnreadableTextError: a second result begins, or it contradicts itself.
    """
    titles = [place for place, line in lines if TITLE.match(line[:200])]
    if not titles:
        return None
    check_single(titles)
    observed = Observed(what="trtllm-bench", kind="benchmark")
    observed.state("engine", "tensorrt-llm", titles[0])
    for place, line in lines:
        go_on()
        said = LINE.match(CELLS.sub("", line[:300]))
        if said:
            _keep(observed, GAPS.sub(" ", said[1]), said[2], place)
    prompts = observed.settings.get("num_prompts")
    assume_at_once(observed, prompts if isinstance(prompts, int) else 0)
    return observed


def _keep(observed: Observed, label: str, text: str, place: int) -> None:
    field = SETTINGS.get(label)
    if field in NAMES:
        state(observed, field, text, place)
    if label in FORMATS and text.lower() not in ("none", "auto"):
        state(observed, FORMATS[label], BEHIND.sub("", text.lower()), place)
    if not VALUE.fullmatch(text):
        return
    value = number(text.removesuffix("%"))
    if field is not None and field not in NAMES:
        state(observed, field, round(value), place)
    elif label == "EP Size" and value > 1:
        observed.state("expert_parallel", True, place)
    elif label == MEMORY:
        state(observed, "gpu_memory_utilization", round(value / 100, 4), place)
    elif label == "Number of concurrent requests":
        keep_load(observed, value, None, place)
    elif label in FIGURES:
        name, scale = FIGURES[label]
        put(observed, name, value, scale, place)
