"""Results of benchmarks as JSON, but for those that lie beside: what each tool calls what answers call otherwise.

Sources:
    vLLM `benchmarks/serve.py`; SGLang `benchmark/serving.py`; TensorRT-LLM `bench/dataclasses/reporting.py`;
    genai-perf `export_data/json_exporter.py`; AIPerf `exporters/metrics_json_exporter.py`,
    `common/models/export_models.py`; inference-perf `reportgen/base.py` (`summarize_requests`).
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from service.measurements import evalscope, guidellm_report, inferencex, llmperf, offline
from service.measurements.drafted import keep_counted, keep_drafts, settle_drafts
from service.measurements.held_back import is_limit_idle, running
from service.measurements.keeping import (
    MS,
    STATISTICS,
    assume_at_once,
    check_answered,
    inside,
    keep_bursts,
    keep_load,
    mapping_in,
    number_in,
    put,
    state,
)
from service.measurements.observed import Doubt, Observed, UnreadableTextError
from service.measurements.swept import keep_swept

PERCENTILE: Final = re.compile(r"p(\d{1,2}(?:\.\d{1,4})?)_(?:ttft|tpot|itl|e2el)_ms")


def benchmark(document: Mapping[str, Any]) -> Observed:
    """Return what a benchmark's result says.

    Raises:
        UnreadableTextError: it is no result of a benchmark that is known here.
    """
    for belongs, reader in READERS:
        if belongs(document):
            observed = reader(document)
            if observed.figures:
                return observed
    known = (
        "the JSON of vllm bench serve --save-result, vllm bench throughput or latency --output-json, SGLang "
        "bench_serving, trtllm-bench, GuideLLM, genai-perf, AIPerf, inference-perf, InferenceX, llmperf or evalscope "
        "perf"
    )
    raise UnreadableTextError(
        1, f"JSON with {', '.join(list(document)[:5])[:100] or 'nothing'} is no result known here", known
    )


def is_known(document: Mapping[str, Any]) -> bool:
    """Return whether a document has the marks of a result that is known here."""
    return any(belongs(document) for belongs, _ in READERS)


def _vllm(document: Mapping[str, Any]) -> Observed:
    observed = Observed(what="vllm bench serve", kind="benchmark")
    done = number_in(document.get("completed", document.get("num_prompts")))
    check_answered(number_in(document.get("num_prompts")) - done, number_in(document.get("num_prompts")))
    if document.get("ramp_up_strategy"):
        raise UnreadableTextError(1, "the rate of requests grows during the run", "a run without --ramp-up-strategy")
    state(observed, "model", document.get("model_id"))
    if str(document.get("backend", "")).startswith("sglang"):
        _sglang(observed, mapping_in(document.get("server_info")))
    # Without a rate and a limit all requests are sent at once; SGLang tells how many were answered alone.
    at_once = (document.get("num_prompts") or done) if document.get("request_rate") in ("inf", 0.0) else None
    most, rate = document.get("max_concurrency"), number_in(document.get("request_rate"))
    if 0 < rate < float("inf") and _is_idle(document, number_in(most), done):
        most = None
    keep_load(observed, most or at_once, rate)
    assume_at_once(observed, done)
    keep_bursts(observed, document.get("burstiness"))
    state(observed, "num_prompts", document.get("num_prompts") or round(done))
    if done:
        state(observed, "input_tokens", round(number_in(document.get("total_input_tokens")) / done))
        state(observed, "output_tokens", round(number_in(document.get("total_output_tokens")) / done))
        observed.lengths_vary = number_in(document.get("total_output_tokens")) % done != 0
    for name, field in (
        ("ttft", "ttft_s"),
        ("tpot", "tpot_s"),
        ("itl", "itl_s"),
        ("e2el", "end_to_end_s"),
        ("e2e_latency", "end_to_end_s"),
    ):
        for statistic in ("mean", "median", "p95", "p99"):
            put(observed, f"{field}.{STATISTICS[statistic]}", document.get(f"{statistic}_{name}_ms"), MS)
    others = {match[1] for name in document if (match := PERCENTILE.fullmatch(name))} - {"50", "95", "99"}
    if others:
        told = ", ".join(f"p{each}" for each in sorted(others, key=float))
        observed.doubts.append(
            Doubt(sentence=f"{told} of the run: only mean, p50, p95 and p99 are compared", fields=())
        )
    put(observed, "requests_per_s", document.get("request_throughput"))
    put(observed, "output_tokens_per_s", document.get("output_throughput"))
    keep_counted(observed, document)
    keep_drafts(observed, document.get("accept_length"), 0.0)
    keep_swept(observed, document)
    return observed


def _is_idle(document: Mapping[str, Any], limit: float, done: float) -> bool:
    """Return whether a result says that its limit held no request back, so that its rate did."""
    names = ("request_throughput", "mean_ttft_ms", "mean_tpot_ms", "total_output_tokens")
    rate, ttft_ms, tpot_ms, tokens = (number_in(document.get(name)) for name in names)
    mean = number_in(document.get("concurrency")) or running(rate, MS * ttft_ms, MS * tpot_ms, tokens / max(done, 1))
    return is_limit_idle(limit, done, number_in(document.get("max_concurrent_requests")), mean)


def _sglang(observed: Observed, server: Mapping[str, Any]) -> None:
    """Keep what SGLang's server says of itself."""
    observed.what = "SGLang bench_serving"
    state(observed, "engine", "sglang")
    for name, field in SGLANG_SERVER.items():
        state(observed, field, server.get(name))
    settle_drafts(observed)


SGLANG_SERVER: Final[Mapping[str, str]] = {
    "model_path": "model",
    "version": "engine_version",
    "tp_size": "tensor_parallel_size",
    "pp_size": "pipeline_parallel_size",
    "mem_fraction_static": "gpu_memory_utilization",
    "max_running_requests": "max_num_seqs",
    "speculative_algorithm": "draft_algorithm",
    "speculative_num_draft_tokens": "verified_tokens",
    "speculative_num_steps": "draft_steps",
}


def _trtllm(document: Mapping[str, Any]) -> Observed:
    observed = Observed(what="trtllm-bench report", kind="benchmark")
    engine, world = mapping_in(document.get("engine")), mapping_in(document.get("world_info"))
    asked, told = mapping_in(document.get("request_info")), mapping_in(document.get("performance"))
    streamed = mapping_in(document.get("streaming_metrics"))
    state(observed, "engine", "tensorrt-llm")
    state(observed, "engine_version", engine.get("version"))
    state(observed, "model", engine.get("model"))
    for name, field in TRTLLM_WORLD.items():
        state(observed, field, world.get(name))
    keep_load(observed, asked.get("avg_num_concurrent_requests"), None)
    state(observed, "num_prompts", asked.get("num_requests"))
    assume_at_once(observed, number_in(asked.get("num_requests")))
    for name, field in (("avg_input_length", "input_tokens"), ("avg_output_length", "output_tokens")):
        state(observed, field, round(number_in(asked.get(name))))
    for name, field in (("ttft", "ttft_s"), ("tpot", "tpot_s")):
        put(observed, f"{field}.mean", streamed.get(f"avg_{name}_ms"), MS)
    put(observed, "end_to_end_s.mean", told.get("avg_request_latency_ms"), MS)
    put(observed, "requests_per_s", told.get("request_throughput_req_s"))
    put(observed, "output_tokens_per_s", told.get("system_output_throughput_tok_s"))
    return observed


TRTLLM_WORLD: Final[Mapping[str, str]] = {
    "tp_size": "tensor_parallel_size",
    "pp_size": "pipeline_parallel_size",
    "max_batch_size": "max_num_seqs",
    "max_num_tokens": "max_num_batched_tokens",
    "kv_cache_percentage": "gpu_memory_utilization",
}


def _perf(document: Mapping[str, Any]) -> Observed:
    observed = Observed(what="genai-perf or AIPerf export", kind="benchmark")
    config = document.get("input_config")
    paths = (("model_names",), ("endpoint", "model_names"), ("model",))
    names = next((names for path in paths if (names := inside(config, *path))), None)
    state(observed, "model", names[0] if isinstance(names, list) else names)
    if document.get("was_cancelled"):
        raise UnreadableTextError(1, "the run was cancelled before its end", "a run that was left to end by itself")
    done, failed = (number_in(inside(document, name, "avg")) for name in ("request_count", "error_request_count"))
    check_answered(failed, failed + done)
    stimulus = mapping_in(inside(config, "perf_analyzer", "stimulus"), inside(config, "loadgen"), config)
    keep_load(observed, stimulus.get("concurrency"), stimulus.get("request_rate"))
    state(observed, "num_prompts", inside(config, "loadgen", "request_count"))
    for name, field in PERF_TIMES.items():
        stated = mapping_in(inside(document, name))
        scale = _seconds(name, stated.get("unit", "ms"))
        for statistic in ("avg", "p50", "p95", "p99"):
            put(observed, f"{field}.{STATISTICS[statistic]}", stated.get(statistic), scale)
    put(observed, "requests_per_s", inside(document, "request_throughput", "avg"))
    put(observed, "output_tokens_per_s", inside(document, "output_token_throughput", "avg"))
    for name, field in (("input_sequence_length", "input_tokens"), ("output_sequence_length", "output_tokens")):
        state(observed, field, round(number_in(inside(document, name, "avg"))))
    return observed


def _seconds(name: str, unit: object) -> float:
    """Return how many seconds a unit is: genai-perf of Triton 24.06 told nanoseconds.

    Source:
        https://github.com/triton-inference-server/perf_analyzer/issues/437.

    Raises:
        UnreadableTextError: it is no unit of time that is known here.
    """
    scale = UNITS.get(str(unit))
    if scale is None:
        raise UnreadableTextError(1, f"{name} is in {str(unit)[:40]!r}", f"one of {', '.join(UNITS)}")
    return scale


UNITS: Final[Mapping[str, float]] = {
    "ns": 1e-9, "us": 1e-6, "ms": MS, "s": 1.0, "sec": 1.0, "seconds": 1.0,
}  # fmt: skip
# Both call the mean time between tokens of a request "inter token latency": it is TPOT by vLLM's definition.
PERF_TIMES: Final[Mapping[str, str]] = {
    "time_to_first_token": "ttft_s",
    "inter_token_latency": "tpot_s",
    "request_latency": "end_to_end_s",
}


def _inference_perf(document: Mapping[str, Any]) -> Observed:
    observed = Observed(what="inference-perf report", kind="benchmark")
    done, load = mapping_in(document.get("successes")), mapping_in(document.get("load_summary"))
    times = mapping_in(done.get("latency"))
    if not times and "time_to_first_token" in done:
        sentence = "what the server counted, over a time and with lengths that are not those of the run"
        raise UnreadableTextError(1, sentence, "the report of the same stage with lifecycle_metrics in its name")
    failed = number_in(inside(document, "failures", "count"))
    check_answered(failed, failed + number_in(done.get("count")))
    keep_load(observed, load.get("concurrency"), load.get("requested_rate") or load.get("achieved_rate"))
    state(observed, "num_prompts", done.get("count"))
    for name, field in INFERENCE_PERF_TIMES.items():
        is_whole = field in ("ttft_s", "end_to_end_s") or _counts_tokens_once(done, times)
        stated = mapping_in(times.get(name)) if is_whole else {}
        for statistic in STATISTICS:
            put(observed, f"{field}.{STATISTICS[statistic]}", stated.get(statistic))
    put(observed, "requests_per_s", inside(done, "throughput", "requests_per_sec"))
    put(observed, "output_tokens_per_s", inside(done, "throughput", "output_tokens_per_sec"))
    for name, field in (("prompt_len", "input_tokens"), ("output_len", "output_tokens")):
        state(observed, field, round(number_in(inside(done, name, "mean"))))
    return observed


def _counts_tokens_once(done: Mapping[str, Any], times: Mapping[str, Any]) -> bool:
    """Return whether a report's time of a token agrees with its latency: older ones counted most tokens twice.

    Source:
        https://github.com/kubernetes-sigs/inference-perf/issues/564.
    """
    whole, first, each = (
        number_in(inside(times, name, "mean"))
        for name in ("request_latency", "time_to_first_token", "time_per_output_token")
    )
    tokens = number_in(inside(done, "output_len", "mean"))
    return not (whole and tokens > 1) or TWICE * each * (tokens - 1) >= whole - first


TWICE: Final = 1.4  # between a token's time and half of it, as a ratio
INFERENCE_PERF_TIMES: Final[Mapping[str, str]] = {
    "time_to_first_token": "ttft_s",
    "time_per_output_token": "tpot_s",
    "inter_token_latency": "itl_s",
    "request_latency": "end_to_end_s",
}
READERS: Final[tuple[tuple[Callable[[Mapping[str, Any]], bool], Callable[[Mapping[str, Any]], Observed]], ...]] = (
    (lambda document: isinstance(document.get("benchmarks"), list), guidellm_report.report),
    (lambda document: isinstance(document.get("time_to_first_token"), Mapping), _perf),
    (lambda document: isinstance(document.get("successes"), Mapping), _inference_perf),
    (lambda document: "results_ttft_s_mean" in document, llmperf.result),
    (lambda document: "tput_per_gpu" in document and "conc" in document, inferencex.result),
    (lambda document: "Succeed requests" in document or "Success Requests" in document, evalscope.summary),
    (lambda document: "world_info" in document and "performance" in document, _trtllm),
    (offline.is_throughput, offline.throughput),
    (offline.is_latency, offline.latency),
    (lambda document: "mean_ttft_ms" in document or "request_throughput" in document, _vllm),
)
