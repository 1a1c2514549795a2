"""Settings of a published run as it states them, and as its engine sets them where it does not."""

from service.calibration.logs.engines import LOGS
from service.calibration.logs.serving import ServingLog
from service.catalog.engine_rules import rules_for
from service.engine import HALF_FORMATS, Gpu, KvCacheDtype, LogNormalLength, ModelFacts, StatedSettings, batch_defaults


def stated_settings(log: ServingLog, model: ModelFacts, gpu: Gpu) -> StatedSettings:
    """Return what a run states of its engine's settings, and what its benchmark is known to set."""
    own = next(checkpoint.weight_format for checkpoint in model.checkpoints if checkpoint.is_default)
    # MXFP4 models are published in that form only.
    is_own = log.weight_format in (None, own) or (own == "mxfp4" and log.weight_format in ("nvfp4", "fp8"))
    budget = LOGS[log.engine].inferencex_batched_tokens if log.is_inferencex else None
    return StatedSettings(
        weight_format=None if is_own else log.weight_format,
        kv_cache_dtype=_cache_dtype(log, gpu),
        max_model_len=log.served.max_model_len or _longest(log),
        max_num_batched_tokens=_budget(log, gpu) or budget,
        max_num_seqs=_of_rank(log.served.max_num_seqs, log) or (log.sent.users if log.sent.how == "full" else None),
        gpu_memory_utilization=log.served.gpu_memory_utilization,
        enforce_eager=log.served.enforce_eager,
    )


def _budget(log: ServingLog, gpu: Gpu) -> int | None:
    """Return the tokens of a batch as stated; dealt out within ranks, attention has a share of the default.

    Source: SGLang 0.5.10 `srt/server_args.py` (`_handle_data_parallelism`).
    """
    stated = log.served.max_num_batched_tokens
    if LOGS[log.engine].deals_within_ranks and log.ranks.data_parallel_size > 1:
        return _of_rank(stated or batch_defaults(rules_for(log.engine), gpu)[0], log)
    return stated


def _of_rank(stated: int | None, log: ServingLog) -> int | None:
    """Return a rank's share of what is stated for all that attention is dealt out to.

    Source: SGLang 0.5.10 `srt/model_executor/model_runner_kv_cache_mixin.py` (`max_running_requests`).
    """
    if stated is None or not LOGS[log.engine].deals_within_ranks:
        return stated
    return max(stated // log.ranks.data_parallel_size, 1)


def _longest(log: ServingLog) -> int:
    """Return the longest request: lengths that spread reach several times their mean."""
    both = log.input_tokens + log.output_tokens
    return both if not isinstance(log.outputs, LogNormalLength) else 4 * both


def _cache_dtype(log: ServingLog, gpu: Gpu) -> KvCacheDtype:
    """Return the stated cache dtype; else what these benchmarks use: 16 bits beside 16-bit weights, else by engine."""
    if log.is_cache_fp8 is not None:
        return "fp8" if log.is_cache_fp8 else "bf16"
    is_asked_for = log.is_inferencex and gpu.architecture.startswith("blackwell")
    is_fp8 = LOGS[log.engine].keeps_fp8_cache or is_asked_for
    return "fp8" if is_fp8 and log.weight_format not in (*HALF_FORMATS, None) else "bf16"
