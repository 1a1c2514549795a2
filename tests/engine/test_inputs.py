"""What a caller fills in: values, equal when they state the same."""

from dataclasses import replace

from service.catalog.snapshot import Snapshot
from service.engine.inputs import Layout, Limits, Load, content_key


def test_gpus_are_equal_when_they_state_the_same(catalog: Snapshot) -> None:
    gpu = catalog.gpu("h100")

    assert replace(gpu) == gpu
    assert replace(gpu) is not gpu
    assert hash(replace(gpu)) == hash(gpu)
    assert replace(gpu, memory_bytes=gpu.memory_bytes - 1) != gpu
    assert replace(gpu, peak_flop_per_s={**gpu.peak_flop_per_s, "bf16": 1.0}) != gpu


def test_the_kind_is_part_of_a_key() -> None:
    assert content_key("gpu", ("a",)) != content_key("model", ("a",))


def test_a_replica_is_as_many_gpus_as_its_parts_multiply_to() -> None:
    assert Layout(tensor_parallel_size=8, pipeline_parallel_size=2, data_parallel_size=4).gpus_per_replica == 64


def test_an_answer_of_one_token_breaks_no_limit_on_further_ones() -> None:
    limits = Limits(ttft_s=1.0, tpot_s=0.03)
    one = Load(concurrent_requests=1, request_rate_per_s=None, input_tokens=500, output_tokens=1)

    assert limits.breakable(one) == Limits(ttft_s=1.0)
    assert limits.breakable(replace(one, output_tokens=2)) == limits
    assert limits.breakable(replace(one, length_distribution="lognormal")) == limits
