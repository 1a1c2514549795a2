"""Results of benchmarks as JSON: vLLM's and SGLang's own, trtllm-bench, GuideLLM, genai-perf, AIPerf, inference-perf.

Sources:
    vLLM `benchmarks/serve.py`; SGLang `benchmark/serving.py`; TensorRT-LLM `bench/dataclasses/reporting.py`;
    GuideLLM `schemas/generative/benchmark.py`; genai-perf `export_data/json_exporter.py`;
    AIPerf `exporters/metrics_json_exporter.py`; inference-perf `reportgen/base.py` (`summarize_requests`).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from service.measurements.observed import Observed, UnreadableTextError

MOST_FAILED: Final = 0.01  # of all requests; above it those that were answered met another load than the stated one
STATISTICS: Final = {"mean": "mean", "avg": "mean", "median": "p50", "p50": "p50", "p95": "p95", "p99": "p99"}
MS: Final = 1e-3


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
        "the JSON of vllm bench serve --save-result, SGLang bench_serving, trtllm-bench, GuideLLM, genai-perf, AIPerf, "
        "inference-perf"
    )
    raise UnreadableTextError(
        1, f"JSON with {', '.join(list(document)[:5])[:100] or 'nothing'} is no result known here", known
    )


def check_answered(failed: float, asked: float, line: int = 1) -> None:
    """Raise UnreadableTextError where so many requests failed that the load was another than the stated one."""
    if failed > MOST_FAILED * asked:
        sentence = f"{failed:,.0f} of {asked:,.0f} requests failed: the others met less than the stated load"
        raise UnreadableTextError(line, sentence, f"a run of which at most {MOST_FAILED:.0%} failed")


def _put(observed: Observed, name: str, value: object, scale: float = 1.0) -> None:
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        observed.see(name, value * scale, 1)


def _set(observed: Observed, name: str, value: object) -> None:
    if isinstance(value, str | int | float) and not isinstance(value, bool) and value not in ("", "inf", 0):
        observed.state(name, value, 1)


def _vllm(document: Mapping[str, Any]) -> Observed:
    observed = Observed(what="vllm bench serve", kind="benchmark")
    done = _number(document.get("completed")) or _number(document.get("num_prompts"))
    check_answered(_number(document.get("num_prompts")) - done, _number(document.get("num_prompts")))
    if document.get("ramp_up_strategy"):
        raise UnreadableTextError(1, "the rate of requests grows during the run", "a run without --ramp-up-strategy")
    _set(observed, "model", document.get("model_id"))
    if str(document.get("backend", "")).startswith("sglang"):
        _sglang(observed, _mapping(document.get("server_info")))
    # Without a rate and a limit all requests are sent at once.
    at_once = document.get("num_prompts") if document.get("request_rate") in ("inf", 0.0) else None
    _load(observed, document.get("max_concurrency") or at_once, document.get("request_rate"))
    _set(observed, "num_prompts", document.get("num_prompts"))
    if done:
        _set(observed, "input_tokens", round(_number(document.get("total_input_tokens")) / done))
        _set(observed, "output_tokens", round(_number(document.get("total_output_tokens")) / done))
    for name, field in (
        ("ttft", "ttft_s"),
        ("tpot", "tpot_s"),
        ("itl", "itl_s"),
        ("e2el", "end_to_end_s"),
        ("e2e_latency", "end_to_end_s"),
    ):
        for statistic in ("mean", "median", "p95", "p99"):
            _put(observed, f"{field}.{STATISTICS[statistic]}", document.get(f"{statistic}_{name}_ms"), MS)
    _put(observed, "requests_per_s", document.get("request_throughput"))
    _put(observed, "output_tokens_per_s", document.get("output_throughput"))
    return observed


def _sglang(observed: Observed, server: Mapping[str, Any]) -> None:
    """Keep what SGLang's server says of itself."""
    observed.what = "SGLang bench_serving"
    _set(observed, "engine", "sglang")
    for name, field in SGLANG_SERVER.items():
        _set(observed, field, server.get(name))


SGLANG_SERVER: Final[Mapping[str, str]] = {
    "model_path": "model",
    "version": "engine_version",
    "tp_size": "tensor_parallel_size",
    "pp_size": "pipeline_parallel_size",
    "mem_fraction_static": "gpu_memory_utilization",
    "max_running_requests": "max_num_seqs",
}


def _trtllm(document: Mapping[str, Any]) -> Observed:
    observed = Observed(what="trtllm-bench report", kind="benchmark")
    engine, world = _mapping(document.get("engine")), _mapping(document.get("world_info"))
    asked, told = _mapping(document.get("request_info")), _mapping(document.get("performance"))
    streamed = _mapping(document.get("streaming_metrics"))
    _set(observed, "engine", "tensorrt-llm")
    _set(observed, "engine_version", engine.get("version"))
    _set(observed, "model", engine.get("model"))
    for name, field in TRTLLM_WORLD.items():
        _set(observed, field, world.get(name))
    _load(observed, asked.get("avg_num_concurrent_requests"), None)
    _set(observed, "num_prompts", asked.get("num_requests"))
    for name, field in (("avg_input_length", "input_tokens"), ("avg_output_length", "output_tokens")):
        _set(observed, field, round(_number(asked.get(name))))
    for name, field in (("ttft", "ttft_s"), ("tpot", "tpot_s")):
        _put(observed, f"{field}.mean", streamed.get(f"avg_{name}_ms"), MS)
    _put(observed, "end_to_end_s.mean", told.get("avg_request_latency_ms"), MS)
    _put(observed, "requests_per_s", told.get("request_throughput_req_s"))
    _put(observed, "output_tokens_per_s", told.get("system_output_throughput_tok_s"))
    return observed


TRTLLM_WORLD: Final[Mapping[str, str]] = {
    "tp_size": "tensor_parallel_size",
    "pp_size": "pipeline_parallel_size",
    "max_batch_size": "max_num_seqs",
    "max_num_tokens": "max_num_batched_tokens",
    "kv_cache_percentage": "gpu_memory_utilization",
}


def _load(observed: Observed, concurrency: object, rate: object) -> None:
    """Keep the load: a concurrency where one is stated, else the rate of arrivals."""
    if isinstance(concurrency, int | float) and concurrency > 0:
        _set(observed, "concurrent_requests", round(concurrency))
    elif isinstance(rate, int | float) and 0 < rate < float("inf"):
        _set(observed, "request_rate_per_s", float(rate))


def _number(value: object) -> float:
    """Return a number, and 0 for what is none."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _mapping(*values: object) -> Mapping[str, Any]:
    """Return the first of several that is an object with something in it."""
    return next((value for value in values if isinstance(value, Mapping) and value), {})


def _inside(document: Any, *path: str) -> Any:
    for name in path:
        document = document.get(name) if isinstance(document, Mapping) else None
    return document


def _guidellm(document: Mapping[str, Any]) -> Observed:
    observed = Observed(what="GuideLLM report", kind="benchmark")
    runs = [run for run in document["benchmarks"] if isinstance(run, Mapping)]
    if len(runs) != 1:
        raise UnreadableTextError(1, f"the report holds {len(runs)} benchmarks", "a report of one benchmark")
    run, metrics = runs[0], runs[0].get("metrics")
    strategy = _mapping(_inside(run, "args", "strategy"), _inside(run, "config", "strategy"))
    models = (("args", "model"), ("config", "model"), ("model",), ("worker", "backend_model"))
    _set(
        observed,
        "model",
        next((name for each in (document, run) for path in models if (name := _inside(each, *path))), None),
    )
    made = _mapping(_inside(run, "run_stats", "requests_made"), _inside(metrics, "request_totals"))
    check_answered(_number(made.get("errored")), _number(made.get("total")))
    _load(observed, strategy.get("streams") or strategy.get("max_concurrency"), strategy.get("rate"))
    for name, field in GUIDELLM_TIMES.items():
        stated = _mapping(_inside(metrics, name, "successful"))
        scale = MS if name.endswith("_ms") else 1.0
        _put(observed, f"{field}.mean", stated.get("mean"), scale)
        _put(observed, f"{field}.p50", stated.get("median"), scale)
        for percentile in ("p95", "p99"):
            _put(observed, f"{field}.{percentile}", _inside(stated, "percentiles", percentile), scale)
    _put(observed, "requests_per_s", _inside(metrics, "requests_per_second", "successful", "mean"))
    _put(observed, "output_tokens_per_s", _inside(metrics, "output_tokens_per_second", "successful", "mean"))
    for name, field in (("prompt_token_count", "input_tokens"), ("output_token_count", "output_tokens")):
        _set(observed, field, round(_number(_inside(metrics, name, "successful", "mean"))))
    return observed


GUIDELLM_TIMES: Final[Mapping[str, str]] = {
    "time_to_first_token_ms": "ttft_s",
    "time_per_output_token_ms": "tpot_s",
    "inter_token_latency_ms": "itl_s",
    "request_latency": "end_to_end_s",
}


def _perf(document: Mapping[str, Any]) -> Observed:
    observed = Observed(what="genai-perf or AIPerf export", kind="benchmark")
    config = document.get("input_config")
    paths = (("model_names",), ("endpoint", "model_names"), ("model",))
    names = next((names for path in paths if (names := _inside(config, *path))), None)
    _set(observed, "model", names[0] if isinstance(names, list) else names)
    stimulus = _mapping(_inside(config, "perf_analyzer", "stimulus"), _inside(config, "loadgen"), config)
    _load(observed, stimulus.get("concurrency"), stimulus.get("request_rate"))
    _set(observed, "num_prompts", _inside(config, "loadgen", "request_count"))
    for name, field in PERF_TIMES.items():
        stated = _mapping(_inside(document, name))
        scale = _seconds(name, stated.get("unit", "ms"))
        for statistic in ("avg", "p50", "p95", "p99"):
            _put(observed, f"{field}.{STATISTICS[statistic]}", stated.get(statistic), scale)
    _put(observed, "requests_per_s", _inside(document, "request_throughput", "avg"))
    _put(observed, "output_tokens_per_s", _inside(document, "output_token_throughput", "avg"))
    for name, field in (("input_sequence_length", "input_tokens"), ("output_sequence_length", "output_tokens")):
        _set(observed, field, round(_number(_inside(document, name, "avg"))))
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
    done, load = _mapping(document.get("successes")), _mapping(document.get("load_summary"))
    failed = _number(_inside(document, "failures", "count"))
    check_answered(failed, failed + _number(done.get("count")))
    _load(observed, load.get("concurrency"), load.get("requested_rate") or load.get("achieved_rate"))
    _set(observed, "num_prompts", done.get("count"))
    for name, field in INFERENCE_PERF_TIMES.items():
        stated = _mapping(_inside(done, "latency", name))
        for statistic in STATISTICS:
            _put(observed, f"{field}.{STATISTICS[statistic]}", stated.get(statistic))
    _put(observed, "requests_per_s", _inside(done, "throughput", "requests_per_sec"))
    _put(observed, "output_tokens_per_s", _inside(done, "throughput", "output_tokens_per_sec"))
    for name, field in (("prompt_len", "input_tokens"), ("output_len", "output_tokens")):
        _set(observed, field, round(_number(_inside(done, name, "mean"))))
    return observed


INFERENCE_PERF_TIMES: Final[Mapping[str, str]] = {
    "time_to_first_token": "ttft_s",
    "time_per_output_token": "tpot_s",
    "inter_token_latency": "itl_s",
    "request_latency": "end_to_end_s",
}
READERS: Final[tuple[tuple[Callable[[Mapping[str, Any]], bool], Callable[[Mapping[str, Any]], Observed]], ...]] = (
    (lambda document: isinstance(document.get("benchmarks"), list), _guidellm),
    (lambda document: isinstance(document.get("time_to_first_token"), Mapping), _perf),
    (lambda document: "load_summary" in document and "successes" in document, _inference_perf),
    (lambda document: "world_info" in document and "performance" in document, _trtllm),
    (lambda document: "mean_ttft_ms" in document or "request_throughput" in document, _vllm),
)
