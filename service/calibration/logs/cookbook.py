"""Serving runs that SGLang's cookbook prints, transcribed into `data/sglang_cookbook.csv`.

One row is one run of `bench_serving` against a server whose launch command the page shows: of one user, or of a
handful to some hundred at once, with lengths drawn evenly from one token to twice their mean ("random") or of ShareGPT.

Source:
    github.com/sgl-project/sgl-cookbook 7b5bd9c, docs/autoregressive/<page>.md, and what is newer in
    github.com/sgl-project/sglang, docs_new/cookbook/autoregressive/<page>.mdx, read in November 2026. `date` is the day
    on which the page got the figures; `version` what the page states, else the newest release of that day, or the first
    that has the model. Left out: runs with drafts, with images or with ranks that attend alone; pages that name no GPU
    or, of the newer ones, no version; Kimi-K2.5 and K2.6, whose 16 users got 2.4 times as many tokens as one did, and
    100 fewer than those. Of first tokens only the median: one compilation among ten requests moves their mean to seven
    times as much.
"""

import csv
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from service.calibration.logs.rows import Row
from service.engine import MILLISECONDS_PER_S

SOURCE: Final = "SGLang cookbook"
PAGES: Final = {
    "sgl-cookbook": "https://github.com/sgl-project/sgl-cookbook/blob/7b5bd9c/docs/autoregressive/{page}.md",
    "docs_new": "https://github.com/sgl-project/sglang/blob/main/docs_new/cookbook/autoregressive/{page}.mdx",
}
EVENLY: Final = "drawn evenly from one token to twice the mean"
LENGTHS: Final = {"uniform": ("random", EVENLY), "sharegpt": ("ShareGPT", "means")}
FLAGS: Final = {
    "gpu_memory_utilization": "--mem-fraction-static",
    "max_num_seqs": "--max-running-requests",
    "max_model_len": "--context-length",
    "kv_cache_dtype": "--kv-cache-dtype",
}


@lru_cache(maxsize=1)
def cookbook_rows() -> tuple[Row, ...]:
    """Return the rows, with the keys of other published runs."""
    path = files("service.calibration") / "data" / "sglang_cookbook.csv"
    with path.open(encoding="utf-8") as lines:
        return tuple(_row(number, run) for number, run in enumerate(csv.DictReader(lines), start=1))


def _row(number: int, run: dict[str, str]) -> dict[str, Any]:
    page = run["page"].rsplit("/", maxsplit=1)[-1].lower()
    launched = [f"{flag} {run[name]}" for name, flag in FLAGS.items() if run[name]]
    paces = {"mean": run["tpot_mean_s"], "p50": run["tpot_median_s"]}
    dataset, basis = LENGTHS[run["lengths"]]
    return {
        "id": f"cookbook-{page}-{number:03}",
        "source": SOURCE,
        "source_url": PAGES[run["repository"]].format(page=run["page"]),
        "date": run["date"],
        "engine": "SGLang",
        "engine_version": run["version"],
        "model": run["model"],
        "gpu": run["gpu"],
        "tp": int(run["tensor_parallel_size"]),
        "pp": 1,
        "ep": int(run["expert_parallel_size"]),
        "num_gpus": int(run["tensor_parallel_size"]),
        "isl": float(run["input_tokens"]),
        "osl": float(run["output_tokens"]),
        "length_basis": basis,
        "dataset": dataset,
        "concurrency": float(run["concurrent_requests"]),
        "num_prompts": int(run["num_prompts"]),
        "measurement_type": "serving_closed_loop",
        "reported": {
            "ttft_ms": {"p50": MILLISECONDS_PER_S * float(run["ttft_median_s"])},
            "tpot_ms": {name: MILLISECONDS_PER_S * float(seconds) for name, seconds in paces.items() if seconds},
            "output_tokens_per_s": float(run["output_tokens_per_s"]) if run["output_tokens_per_s"] else None,
        },
        "notes": f"Parameters: {' '.join(launched)}." if launched else "",
        "quality_tier": "B",
    }
