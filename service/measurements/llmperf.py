"""Results of llmperf's `token_benchmark_ray.py`: its summary as JSON, and the lines that it prints.

What it calls inter-token latency is the whole latency divided by the tokens, the first one's time with it: it is no
TPOT and is not kept.

Source:
    https://github.com/ray-project/llmperf, `token_benchmark_ray.py` (`metrics_summary`),
    `src/llmperf/ray_clients/openai_chat_completions_client.py`.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from service.measurements.keeping import Lines, check_answered, check_single, keep_load, number_in, put, state
from service.measurements.observed import Observed

WHAT: Final = "llmperf"
TIMES: Final[Mapping[str, str]] = {"ttft_s": "ttft_s", "end_to_end_latency_s": "end_to_end_s"}
STATISTICS: Final[Mapping[str, str]] = {
    "mean": "mean", "quantiles_p50": "p50", "quantiles_p95": "p95", "quantiles_p99": "p99",
}  # fmt: skip
LENGTHS: Final[Mapping[str, str]] = {"number_input_tokens": "input_tokens", "number_output_tokens": "output_tokens"}
SECTION: Final = re.compile(r"^(inter_token_latency_s|ttft_s|end_to_end_latency_s|\w{1,60}_tokens?\w{0,30})\s*$")
STATISTIC: Final = re.compile(r"^\s+(mean|p50|p95|p99) = (\d{1,12}(?:\.\d{1,20})?)\s*$")
TOTAL: Final = re.compile(
    r"^(Number Of Errored Requests|Overall Output Throughput|Number Of Completed Requests|"
    r"Completed Requests Per Minute): (\d{1,12}(?:\.\d{1,20})?)\s*$"
)
TOTALS: Final[Mapping[str, str]] = {
    "Number Of Errored Requests": "number_errors",
    "Overall Output Throughput": "mean_output_throughput_token_per_s",
    "Number Of Completed Requests": "num_completed_requests",
    "Completed Requests Per Minute": "num_completed_requests_per_min",
}
COMMAND: Final = re.compile(r"token_benchmark_ray\.py\b(.{0,4000})")
FLAGS: Final = (
    ("model", re.compile(r"--model[ =][\"']?([^\s\"'\\]{1,200})")),
    ("num_concurrent_requests", re.compile(r"--num-concurrent-requests[ =][\"']?(\d{1,6})")),
)


def result(document: Mapping[str, Any], lines: Mapping[str, int] | None = None) -> Observed:
    """Return what a summary says.

    Args:
        document: its flat fields.
        lines: where each stands; None: all in one.

    Raises:
        UnreadableTextError: too many of its requests failed.
    """
    observed, places = Observed(what=WHAT, kind="benchmark"), lines or {}
    done = number_in(document.get("results_num_completed_requests"))
    failed = number_in(document.get("results_number_errors"))
    check_answered(failed, failed + done, places.get("results_number_errors", 1))
    state(observed, "model", document.get("model"), places.get("model", 1))
    keep_load(observed, document.get("num_concurrent_requests"), None, places.get("num_concurrent_requests", 1))
    state(observed, "num_prompts", round(done), places.get("results_num_completed_requests", 1))
    for name, field in LENGTHS.items():
        key = f"results_{name}_mean"
        state(observed, field, round(number_in(document.get(key))), places.get(key, 1))
    for name, field in TIMES.items():
        for theirs, ours in STATISTICS.items():
            key = f"results_{name}_{theirs}"
            put(observed, f"{field}.{ours}", document.get(key), line=places.get(key, 1))
    for key, field, scale in (
        ("results_num_completed_requests_per_min", "requests_per_s", 1 / 60),
        ("results_mean_output_throughput_token_per_s", "output_tokens_per_s", 1.0),
    ):
        put(observed, field, document.get(key), scale, places.get(key, 1))
    return observed


def printed(lines: Lines) -> Observed | None:
    """Return what printed lines say; None where llmperf's are none.

    Raises:
        UnreadableTextError: a second result begins, or too many requests failed.
    """
    titles = [place for place, line in lines if line.rstrip() == "ttft_s"]
    if not titles:
        return None
    check_single(titles)
    document: dict[str, Any] = {}
    places: dict[str, int] = {}
    section = ""
    for place, line in lines:
        for name, value in _said(line, section):
            document.setdefault(name, value)
            places.setdefault(name, place)
        head = SECTION.match(line[:200])
        section = head[1] if head else section
    return result(document, places)


def _said(line: str, section: str) -> list[tuple[str, str | float]]:
    """Return the fields that one line says, as the JSON names them."""
    statistic, total, command = STATISTIC.match(line[:200]), TOTAL.match(line[:200]), COMMAND.search(line[:4_000])
    if statistic and section:
        name = statistic[1] if statistic[1] == "mean" else f"quantiles_{statistic[1]}"
        return [(f"results_{section}_{name}", float(statistic[2]))]
    if total:
        return [(f"results_{TOTALS[total[1]]}", float(total[2]))]
    flags = [(name, flag.search(command[1])) for name, flag in FLAGS] if command else []
    return [(name, said[1] if name == "model" else float(said[1])) for name, said in flags if said]
