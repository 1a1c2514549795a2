"""Which batches each release captures: vLLM `_set_cudagraph_sizes` from 0.8.0 to 0.33.0, read from its archives."""

from dataclasses import replace

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.device import device_of
from service.engine.inputs import EngineName, EngineSettings
from service.engine.memory.captured import captures_of

SETTINGS = EngineSettings(
    gpu_memory_utilization=0.9,
    kv_cache_dtype="auto",
    max_model_len=8_192,
    max_num_batched_tokens=8_192,
    max_num_seqs=64,
)


@pytest.mark.parametrize(
    ("engine", "version", "gpu", "drafts", "seqs", "largest"),
    [
        ("vllm", "0.9.2", "h100", 0, 64, 512),  # whatever may run
        ("vllm", "0.10.0", "h100", 0, 64, 128),  # "min(max_num_seqs * 2, 512)"
        ("vllm", "0.23.0", "h100", 3, 64, 128),
        ("vllm", "0.24.0", "h100", 3, 64, 512),  # "max_num_seqs * decode_query_len * 2"
        ("vllm", "0.24.0", "h100", 3, 16, 128),
        ("vllm", "0.27.1", "b200", 0, 1_024, 512),
        ("vllm", "0.28.0", "b200", 0, 1_024, 1_024),  # "1024 if ...is_device_capability_family(100) else 512"
        ("vllm", "0.33.0", "b300", 0, 1_024, 1_024),
        ("vllm", "0.33.0", "h200", 0, 1_024, 512),
        ("vllm", "0.33.0", "rtx-pro-6000-server", 0, 1_024, 512),
        ("sglang", None, "b200", 3, 64, 128),
    ],
)
def test_the_largest_batch_is_that_of_the_release(
    catalog: Snapshot, engine: EngineName, version: str | None, gpu: str, drafts: int, seqs: int, largest: int
) -> None:
    device = device_of(catalog.gpu(gpu), rules_for(engine, version))
    captures = captures_of(replace(SETTINGS, num_speculative_tokens=drafts), device)

    assert captures.largest(8_192, seqs) == largest
    assert captures.largest(96, seqs) == min(largest, 96)
