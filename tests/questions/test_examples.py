"""Shared examples add up."""

from service.questions.examples import LLAMA_CONFIG, MEMORY_PER_GPU
from service.questions.registry import QUESTIONS


def test_the_memory_of_one_gpu_adds_up() -> None:
    terms = {name: size for name, size in MEMORY_PER_GPU.items() if name not in ("total_bytes", "shortfall_bytes")}

    assert sum(terms.values()) == MEMORY_PER_GPU["total_bytes"]


def test_every_example_states_known_fields_and_a_summary() -> None:
    for question in QUESTIONS:
        for example in question.examples.values():
            assert example["summary"]
            assert question.body.model_validate(example["value"])


def test_the_pasted_config_is_one_of_the_examples() -> None:
    assert any(
        example["value"].get("model_config") is LLAMA_CONFIG
        for question in QUESTIONS
        for example in question.examples.values()
    )
