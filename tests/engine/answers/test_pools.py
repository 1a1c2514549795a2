"""Each pool is told as it is to be started: its layout, and the engine's arguments."""

from service.engine.answers.pools import pools_of
from service.engine.fleet.pools import pools_for
from service.engine.inputs import Limits
from tests.engine.conftest import Asked, arrivals


def test_a_prefill_pool_is_told_whole(asked: Asked) -> None:
    """Its GPUs and its tensor parallelism alone do not tell stages from copies."""
    question = asked("llama-3.3-70b", load=arrivals(10.0, 4_000, 300), limits=Limits())
    pair = pools_for(question)
    told = pools_of(pair, frozenset())
    args = dict(zip(told.prefill_engine_args[::2], told.prefill_engine_args[1::2], strict=False))

    assert told.prefill_gpus_per_replica > told.prefill_tensor_parallel_size
    assert told.prefill_layout.gpus_per_replica == told.prefill_gpus_per_replica
    assert args["--tensor-parallel-size"] == str(told.prefill_tensor_parallel_size)
    assert args["--pipeline-parallel-size"] == str(told.prefill_layout.pipeline_parallel_size)
    assert args["--max-num-seqs"] == str(pair.prefill.plan.settings.max_num_seqs)
