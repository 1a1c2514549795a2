"""How a published run spread its model over GPUs, in each engine's own way of counting them."""

from dataclasses import dataclass
from typing import Final

from service.calibration.logs.engines import logs_of
from service.calibration.logs.rows import Row, remarks
from service.calibration.logs.sent import is_mlperf

DEALT_ATTENTION: Final = "enable-dp-attention"
DEALT_EXPERTS: Final = "moe-a2a-backend=deepep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """One replica, and the GPUs of the whole run."""

    tensor_parallel_size: int
    pipeline_parallel_size: int
    data_parallel_size: int
    num_gpus: int
    expert_parallel: bool
    spreads_attention: bool  # attention is replicated and requests are dealt out, if the model has experts

    @property
    def copies(self) -> int:
        """Return how many equal replicas share what is sent."""
        replica = self.tensor_parallel_size * self.pipeline_parallel_size * self.data_parallel_size
        return max(self.num_gpus // replica, 1)


def read_ranks(row: Row) -> Ranks:
    """Return how a run's model is spread.

    SGLang counts the ranks of attention in data parallelism among those of tensor parallelism; DeepEP deals out
    experts to all of them. Elsewhere ranks of data parallelism share experts only where those are spread over all;
    else they are replicas of their own.

    Source:
        SGLang 0.5.10 `srt/server_args.py` (`_handle_data_parallelism`, `_handle_a2a_moe`).
    """
    split, stages, dealt, spread = (int(row.get(name) or 1) for name in ("tp", "pp", "dp", "ep"))
    if is_dealt_within_ranks(row):
        split, is_spread = max(split // dealt, 1), spread > 1 or DEALT_EXPERTS in remarks(row)
    else:
        is_spread = spread > 1
        dealt = dealt if is_spread and spread > split else 1
        split = max(split, spread // dealt)
    return Ranks(
        tensor_parallel_size=split,
        pipeline_parallel_size=stages,
        data_parallel_size=dealt,
        num_gpus=decode_workers(row) * split or int(row.get("num_gpus") or split * stages),
        expert_parallel=is_spread,
        spreads_attention="attention DP" in str(row.get("notes")) or (is_mlperf(row) and is_spread),
    )


def decode_workers(row: Row) -> int:
    """Return how many replicas decode alone, as others read; 0 where replicas do both."""
    return int((row.get("disaggregated") or {}).get("decode_workers") or 0)


def is_dealt_within_ranks(row: Row) -> bool:
    """Return whether requests are dealt out to ranks that each attend alone."""
    logs, is_dealt = logs_of(str(row["engine"])), int(row.get("dp") or 1) > 1 and DEALT_ATTENTION in remarks(row)
    return logs is not None and logs.deals_within_ranks and is_dealt
