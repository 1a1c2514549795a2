"""How a published run sent its prompts, and with which settings it was served, as its row and its notes state them."""

import re
from dataclasses import dataclass
from typing import Final, Literal

from service.calibration.logs.engines import logs_of
from service.calibration.logs.rows import Row, remarks

How = Literal["users", "full", "arrivals", "offline"]

# Arrivals by the clock; the rest are Poisson.
EVEN: Final = 1e7
INFERENCEX_PROMPTS_PER_USER: Final = 10
OPEN_REQUESTS: Final = 500
PROMPTS: Final = (
    r"[Rr]equests (\d+)",
    r"(\d+) prompts",
    r"(\d+) requests in",
    r"completed (\d+)",
    r"few requests \(\d+-(\d+)",
)
SECONDS: Final = r"(\d+) s per point"
# MLPerf's harness of TensorRT-LLM names both otherwise: requests of one rank, tokens of its batch.
SEQS: Final = r"(?:max[-_](?:num[-_]seqs|running[-_]requests)|gpu_batch_size)[ =]+(\d+)"
BATCHED: Final = r"(?:max[-_]num[-_](?:batched[-_])?tokens|chunked[-_]prefill[-_]size)[ =]+(\d+)"
UTILIZATION: Final = r"(?:gpu[-_]memory[-_]utilization|mem[-_]fraction[-_]static)[ =]+(0\.\d+|1\.0)"
LONGEST: Final = r"(?:max[-_]model[-_]len|context[-_]length)[ =]+(\d+)"
# Second-hand: the system prompt that the open loops of one source share.
SHARED_PREFIX: Final = "shared_prefix"
SHARED_PREFIX_TOKENS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What was sent, and when."""

    how: How  # users who start at once; a batch that is always full; arrivals; everything at once
    users: int | None
    request_rate_per_s: float | None
    count: int | None  # prompts; None: as many as it takes
    burstiness: float
    is_steady: bool  # measured over many minutes: ramp and drain do not count
    is_in_process: bool  # the engine is called as a library with tokens: no HTTP, no tokenizer
    is_dealt_evenly: bool  # servers side by side take what comes in turn
    read_every: int  # iterations, of which one reads prompts while others decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Settings as stated; None where they are the engine's own."""

    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    gpu_memory_utilization: float | None
    max_model_len: int | None
    enforce_eager: bool
    plans_ahead: bool  # asked for where it is no default


def read_sent(row: Row) -> Sent:
    """Return how prompts were sent."""
    rate = row.get("request_rate_per_s") or row.get("request_rate")
    users, logs = _users(row), logs_of(str(row["engine"]))
    count = row.get("num_prompts") or _first(PROMPTS, row)
    is_full = "energy" in row
    how: How = "arrivals" if rate else ("full" if is_full else "users") if users else "offline"
    if how == "users" and count is None:
        count = INFERENCEX_PROMPTS_PER_USER * (users or 1)
    if how == "arrivals" and count is None:
        seconds = _first((SECONDS,), row)
        count = OPEN_REQUESTS if seconds is None else round(float(rate or 0) * int(seconds))
    return Sent(
        how=how,
        users=users,
        request_rate_per_s=float(rate) if rate else None,
        count=None if count is None else int(count),
        burstiness=EVEN if str(row.get("arrival")) == "constant" else 1.0,
        is_steady=is_mlperf(row),
        # "Tokenization has not been part of the benchmark": github.com/mlcommons/inference language/*/README.md.
        is_in_process=is_mlperf(row),
        is_dealt_evenly=logs is not None and logs.is_dealt_evenly and is_mlperf(row),
        read_every=_read_every(row) if how == "arrivals" else 1,
    )


def _read_every(row: Row) -> int:
    """Return the iterations of which one reads prompts, where ranks that attend alone wait to read together.

    While not all of them have prompts, one iteration in so many reads, whenever a prompt came.
    """
    logs, is_spread = logs_of(str(row["engine"])), int(row.get("ep") or 1) > 1
    waits = is_mlperf(row) and is_spread and "deepseek-r1" in str(row.get("dataset"))
    return logs.reads_together_every if logs is not None and waits else 1


def _users(row: Row) -> int | None:
    """Return the users of a closed loop; of a pool that decodes alone, those who wait for no first token.

    users x (1 - time to first token / end-to-end latency)
    """
    users = int(row["concurrency"]) if row.get("concurrency") else None
    reported = row["reported"]
    ttft, tpot = ((reported.get(name) or {}).get("mean") for name in ("ttft_ms", "tpot_ms"))
    if users is None or not row.get("disaggregated") or not ttft or not tpot:
        return users
    decodes = float(tpot) * (float(row["osl"]) - 1)
    return max(round(users * decodes / (float(ttft) + decodes)), 1)


def read_served(row: Row) -> Served:
    """Return the settings that a row states."""
    seqs, batched, longest = (_first((pattern,), row) for pattern in (SEQS, BATCHED, LONGEST))
    share = _first((UTILIZATION,), row)
    return Served(
        max_num_seqs=None if seqs is None else int(seqs),
        max_num_batched_tokens=None if batched is None else int(batched),
        gpu_memory_utilization=None if share is None else min(float(share), 0.98),
        max_model_len=None if longest is None else int(longest),
        plans_ahead="--async-scheduling" in remarks(row),
        enforce_eager="enforce-eager" in remarks(row) or "enforce_eager True" in remarks(row),
    )


def is_mlperf(row: Row) -> bool:
    """Return whether a row is a result of MLPerf."""
    return "mlperf" in str(row.get("quality_tier"))


def shared_tokens(row: Row) -> int:
    """Return the tokens at the beginning of every prompt that are all the same, where they are kept."""
    return SHARED_PREFIX_TOKENS if row.get("prefix_caching") and SHARED_PREFIX in str(row.get("dataset")) else 0


def _first(patterns: tuple[str, ...], row: Row) -> str | None:
    matches = (re.search(pattern, remarks(row)) for pattern in patterns)
    return next((match.group(1) for match in matches if match), None)
