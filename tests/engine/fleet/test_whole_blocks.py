"""Which parts vLLM's and SGLang's own classes refuse to load, as they were built on a simulated H100."""

import pytest
from starlette.testclient import TestClient

# checkpoint, ranks, what of it is no whole block; vLLM 0.14 to 0.33: "The input size is not aligned with the quantized
# weight shape. This can be caused by too large tensor parallel size."
UNEVEN = [("Qwen/Qwen2.5-0.5B-Instruct-AWQ", 2, "448 of the 896 columns of the attention's output")]
EVEN = [
    ("Qwen/Qwen2.5-0.5B-Instruct-AWQ", 1),
    ("Qwen/Qwen2.5-1.5B-Instruct-GPTQ-Int4", 2),
    ("Qwen/Qwen2.5-72B-Instruct-AWQ", 8),
]


def ask(client: TestClient, checkpoint: str, ranks: int) -> tuple[int, str]:
    asked: dict[str, str | int] = {"model": checkpoint, "gpu": "h200", "tensor_parallel_size": ranks}
    response = client.get("/capacity", params={**asked, "max_model_len": 4_096})
    return response.status_code, response.text


@pytest.mark.parametrize(("checkpoint", "ranks", "words"), UNEVEN)
def test_a_rank_with_a_part_of_a_group_is_refused(client: TestClient, checkpoint: str, ranks: int, words: str) -> None:
    status, text = ask(client, checkpoint, ranks)

    assert status == 422
    assert words in text


@pytest.mark.parametrize(("checkpoint", "ranks"), EVEN)
def test_a_rank_with_whole_groups_starts(client: TestClient, checkpoint: str, ranks: int) -> None:
    assert ask(client, checkpoint, ranks)[0] == 200


# SGLang 0.5.23: "The output_size of gate's and up's weight = 192 is not divisible by weight quantization block_n = 128."
@pytest.mark.parametrize(("engine", "status"), [("sglang", 422), ("vllm", 200)])
def test_sglang_cuts_no_block_of_an_expert(client: TestClient, engine: str, status: int) -> None:
    asked: dict[str, str | int] = {"model": "Qwen/Qwen3-30B-A3B-FP8", "gpu": "h100", "tensor_parallel_size": 4}
    response, dealt = (
        client.get("/capacity", params={**asked, "engine": engine, "expert_parallel": is_dealt})
        for is_dealt in ("false", "true")
    )

    assert response.status_code == status
    assert status == 200 or "192 of the 768" in response.text
    assert dealt.status_code == 200
