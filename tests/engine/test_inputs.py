"""What a caller fills in: values, equal when they state the same."""

from dataclasses import replace

from service.catalog.snapshot import Snapshot
from service.engine.inputs import Layout, content_key


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
