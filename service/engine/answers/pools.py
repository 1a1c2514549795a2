"""How prefill and decode on GPUs of their own are told: how large each pool is, and how its replicas start."""

from dataclasses import dataclass

from service.engine.fleet.command import launch
from service.engine.fleet.pools import PoolPair
from service.engine.inputs import Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """Prefill and decode on GPUs of their own."""

    prefill_replicas: int
    prefill_gpus_per_replica: int
    prefill_tensor_parallel_size: int
    prefill_layout: Layout
    prefill_engine_args: tuple[str, ...]  # as `engine_args` are of the decode pool
    decode_replicas: int
    decode_gpus_per_replica: int
    decode_tensor_parallel_size: int
    kv_transfer_bytes_per_gpu: int  # of one mean prompt
    interconnect_bytes_per_s: float  # one direction, per GPU
    kv_transfer_s: float


def pools_of(pair: PoolPair, flags: frozenset[str]) -> Pools:
    """Return the sizes of both pools, and what goes between them.

    Args:
        pair: both pools.
        flags: those of the engine's version; empty where nobody knows.
    """
    prefill, decode = pair.prefill, pair.decode
    is_told = pair.is_feasible  # one pool's count beside a pool that there is none of is no number to scale by
    return Pools(
        prefill_replicas=prefill.replicas if is_told else 0,
        prefill_gpus_per_replica=prefill.layout.gpus_per_replica,
        prefill_tensor_parallel_size=prefill.layout.tensor_parallel_size,
        prefill_layout=prefill.layout,
        prefill_engine_args=launch(prefill, flags).engine_args,
        decode_replicas=decode.replicas if is_told else 0,
        decode_gpus_per_replica=decode.layout.gpus_per_replica,
        decode_tensor_parallel_size=decode.layout.tensor_parallel_size,
        kv_transfer_bytes_per_gpu=pair.sent_bytes,
        interconnect_bytes_per_s=pair.interconnect_bytes_per_s,
        kv_transfer_s=pair.transfer_s,
    )
