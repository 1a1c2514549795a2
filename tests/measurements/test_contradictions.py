"""Lines of one log that contradict each other are told, both of them, where a server may have written both."""

import pytest
from starlette.testclient import TestClient

from service.measurements.observed import UnreadableTextError
from service.measurements.reading import read_measurement

# Lines as vLLM 0.11 writes them, figures made up.
CONFIG = (
    "INFO 11-24 10:00:10 [core.py:58] Initializing a V1 LLM engine (v0.11.0) with config: "
    "model='meta-llama/Llama-3.1-8B-Instruct', tensor_parallel_size=1, pipeline_parallel_size=1\n"
)
LOADED = "Model loading took 15.0 GiB memory\nGPU KV cache size: 460,496 tokens\n"
ARGUMENTS = "INFO non-default args: {{'model': '{model}', 'tensor_parallel_size': {ranks}}}\n"


def told(text: str) -> list[str]:
    """Return what is said of a text."""
    return [doubt.sentence for doubt in read_measurement(text).doubts]


def test_two_sizes_of_one_cache_are_told_by_their_lines(client: TestClient) -> None:
    text = CONFIG + LOADED + "GPU KV cache size: 160,496 tokens\n"
    answer = client.post("/measurements", json={"text": text, "question": {"gpu": "h100"}}).json()

    [sentence] = told(text)
    assert sentence.startswith("line 4 says kv_cache.tokens 160496, and line 3 460496: the smaller was compared")
    assert sentence in answer["warnings"]


@pytest.mark.parametrize("tokens", ["460,496", "455,000", "430,112"])
def test_ranks_that_hold_about_as_much_are_no_contradiction(tokens: str) -> None:
    assert told(CONFIG + LOADED + f"GPU KV cache size: {tokens} tokens\n") == []


def test_settings_that_lines_of_two_kinds_state_otherwise_are_told(client: TestClient) -> None:
    other = ARGUMENTS.format(model="Qwen/Qwen3-8B", ranks=2) + CONFIG + LOADED

    assert told(other) == [
        f"line 2 says {field} {said}, and line 1 {read}, which was read: state {field} if it is the other one"
        for field, said, read in (
            ("model", "'meta-llama/Llama-3.1-8B-Instruct'", "'Qwen/Qwen3-8B'"),
            ("tensor_parallel_size", 1, 2),
        )
    ]
    answer = client.post("/measurements", json={"text": other, "question": {"gpu": "h100"}}).json()
    assert set(told(other)) <= set(answer["warnings"])


@pytest.mark.parametrize("model", ["meta-llama/Llama-3.1-8B-Instruct", "/models/llama", "./llama", "llama"])
def test_a_folder_is_no_other_model(model: str) -> None:
    assert told(ARGUMENTS.format(model=model, ranks=1) + CONFIG + LOADED) == []


def test_a_line_of_the_same_kind_is_of_another_server() -> None:
    with pytest.raises(UnreadableTextError, match="line 2: tensor_parallel_size is 4, and line 1 says 1"):
        read_measurement("".join(ARGUMENTS.format(model="Qwen/Qwen3-8B", ranks=ranks) for ranks in (1, 4)) + LOADED)
