"""Line 7: numbers that were errors of the service, or wrong answers."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.seen.checkout import Checkout, Running
from benchmarks.seen.questions import ORDINARY, gpu, offer, pasted, path, quantized

RATE = {"model": "llama-3.1-8b", "gpu": "h100", "input_tokens": 1000, "output_tokens": 200}
STEP3 = {
    "architectures": ["Step3TextForCausalLM"],
    "model_type": "step3_text",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "num_hidden_layers": 61,
    "num_attention_heads": 64,
    "num_attention_groups": 1,
    "head_dim": 256,
    "share_q_dim": 2048,
    "moe_intermediate_size": 5120,
    "moe_num_experts": 48,
    "moe_top_k": 3,
    "share_expert_dim": 5120,
    "vocab_size": 128815,
    "max_position_embeddings": 65536,
    "torch_dtype": "bfloat16",
    "moe_layers_enum": "9" * 5_000,
}


def numbers(value: Any) -> Iterator[Any]:
    """Yield every leaf under the latencies of an answer."""
    if isinstance(value, dict):
        for each in value.values():
            yield from numbers(each)
    else:
        yield value


@pytest.mark.parametrize("rate", ["1e-306", "5e-324"])
@pytest.mark.parametrize("asked", ["size", "capacity"])
def test_7_a_rate_of_next_to_nothing_is_no_error_of_the_service(shared: Running, rate: str, asked: str) -> None:
    assert shared.get(path({**RATE, "request_rate_per_s": rate}, asked), 60).status < 500


def test_7_an_enumeration_of_five_thousand_digits_is_no_error_of_the_service(shared: Running) -> None:
    assert shared.post("/size", pasted(STEP3)).status < 500


@pytest.mark.parametrize("blocks", [[0], [-1, 5]], ids=str)
def test_7_blocks_that_cannot_be_are_refused(shared: Running, blocks: list[int]) -> None:
    assert shared.post("/size", quantized(weight_block_size=blocks)).status == 422


def test_7_a_small_rate_has_no_latency_of_nothing(shared: Running) -> None:
    said = shared.get(path({**RATE, "request_rate_per_s": "1e-13"}), 60)

    assert said.status == 422 or 0.0 not in set(numbers(said.document["latency"]["ttft_s"])), "TTFT 0.0"


@pytest.mark.parametrize("written", ["json", "prometheus"])
def test_7_no_answer_has_a_number_that_is_none(shared: Running, written: str) -> None:
    said = shared.get(path({**RATE, "request_rate_per_s": "1e-305", "format": written}), 60)

    if written == "json":
        assert said.status == 422 or None not in set(numbers(said.document.get("at_load", {}))), "null"
    else:
        assert b"nan" not in said.body.lower(), "nan"


def test_7_a_boolean_is_no_number(shared: Running) -> None:
    assert shared.post("/size", {**ORDINARY, "concurrent_requests": True}).status == 422


def test_7_a_memory_of_next_to_nothing_is_the_caller_s_mistake(shared: Running) -> None:
    said = shared.put("/catalog/gpus/made-up-100gb", gpu(memory_bytes=1e-300))

    assert 400 <= said.status < 500, json.loads(said.body).get("detail", said.status)


def test_7_what_postgresql_cannot_hold_is_the_caller_s_mistake(checkout: Checkout, postgres_url: str) -> None:
    with checkout.served(database_url=postgres_url) as server:
        named = server.put("/catalog/offers/made-up-offer", offer(instance_type="a" * 129))
        nul = server.put("/catalog/gpus/made-up-100gb", {**gpu(), "scale_up_kind": "\x00"})

    assert 400 <= named.status < 500, f"129 characters: {named.status}"
    assert 400 <= nul.status < 500, f"NUL: {nul.status}"
