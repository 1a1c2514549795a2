"""A run that was started with a rate and a limit: whichever of the two held requests back is its load."""

import json
from typing import Any

import pytest

from service.measurements.reading import read_measurement

PRINTED = """============ Serving Benchmark Result ============
Backend:                                 {backend}
Traffic request rate:                    {rate}
Max request concurrency:                 {limit}
Successful requests:                     {prompts}
Total input tokens:                      {tokens_in}
Total generated tokens:                  {tokens_out}
Request throughput (req/s):              {throughput}
{running}
Mean TTFT (ms):                          {ttft_ms}
Mean TPOT (ms):                          {tpot_ms}
"""
# https://github.com/shun8686/for_debug: `test_ascend_deepseek_r1_w4a8_1p1d_16p_in2k_out2k_50ms.txt`
SATURATED: dict[str, Any] = {
    "backend": "sglang", "rate": 8.0, "limit": 400, "prompts": 3_200, "tokens_in": 6_553_600, "tokens_out": 6_553_600,
    "throughput": 3.80, "running": "Peak concurrent requests: 412\nConcurrency: 363.61", "ttft_ms": 4_964.99,
    "tpot_ms": 44.30,
}  # fmt: skip
# The same: `test_ascend_deepseek_r1_w8a8_2p1d_32p_in3k5_out1k5_20ms.txt`, with a place for each of its prompts.
ROOMY: dict[str, Any] = {
    "backend": "sglang", "rate": 16.0, "limit": 768, "prompts": 768, "tokens_in": 2_688_000, "tokens_out": 1_152_000,
    "throughput": 1.07, "running": "Peak concurrent requests: 736\nConcurrency: 362.64", "ttft_ms": 309_558.33,
    "tpot_ms": 18.94,
}  # fmt: skip
# https://github.com/djangodevreng/dgx-spark-benchmarks: `gemma-4-e2b-it/bf16/10-monday-peak.log`. It kept 24 of 25.
FULL = SATURATED | {
    "backend": "vllm", "rate": 1.5, "limit": 25, "prompts": 300, "tokens_in": 1_202_084, "tokens_out": 150_317,
    "throughput": 0.99, "running": "", "ttft_ms": 578.93, "tpot_ms": 46.52,
}  # fmt: skip


@pytest.mark.parametrize(
    ("run", "load"),
    [
        (SATURATED, {"concurrent_requests": 400}),
        (ROOMY, {"request_rate_per_s": 16.0}),
        (FULL, {"concurrent_requests": 25}),
        (FULL | {"limit": 200}, {"request_rate_per_s": 1.5}),
        (FULL | {"limit": 30, "running": "Peak concurrent requests: 27.00"}, {"request_rate_per_s": 1.5}),
        (FULL | {"rate": "inf", "limit": 300}, {"concurrent_requests": 300}),
    ],
    ids=["saturated", "as many as prompts", "full", "half empty", "never reached", "no rate"],
)
def test_what_held_requests_back_is_the_load(run: dict[str, Any], load: dict[str, float]) -> None:
    document = {
        "model_id": "any", "num_prompts": run["prompts"], "completed": run["prompts"], "request_rate": run["rate"],
        "max_concurrency": run["limit"], "total_input_tokens": run["tokens_in"], "mean_ttft_ms": run["ttft_ms"],
        "total_output_tokens": run["tokens_out"], "mean_tpot_ms": run["tpot_ms"],
        "request_throughput": run["throughput"],
    }  # fmt: skip
    counted = dict(line.split(": ") for line in run["running"].splitlines())
    names = {"max_concurrent_requests": "Peak concurrent requests", "concurrency": "Concurrency"}
    document |= {name: float(counted[label]) for name, label in names.items() if label in counted}

    for text in (PRINTED.format(**run), json.dumps(document)):
        settings = read_measurement(text).settings
        assert {
            name: settings[name] for name in settings if name in ("concurrent_requests", "request_rate_per_s")
        } == load
