"""Each engine derives a context from the same config in its own way."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.errors import InvalidQuestionError
from service.engine.families import parse_architecture
from service.engine.fleet.contexts import check_lengths, longest_context, unasked_context
from service.engine.inputs import EngineName
from service.questions.examples import LLAMA_CONFIG


@pytest.mark.parametrize(
    ("engine", "model", "unasked", "longest"),
    [
        # microsoft/Phi-3.5-mini-instruct: LongRoPE from 4,096 tokens to the 131,072 that it states.
        ("vllm", "phi-3.5-mini-instruct", 4_096, 131_072),
        ("sglang", "phi-3.5-mini-instruct", 131_072, 131_072),
        ("tensorrt-llm", "phi-3.5-mini-instruct", 131_072, 131_072),
        # meta-llama/Llama-3.1-8B-Instruct: a scaling that the stated 131,072 tokens have in them.
        ("vllm", "llama-3.1-8b", 131_072, 131_072),
        ("sglang", "llama-3.1-8b", 131_072, 131_072),
    ],
)
def test_a_context_is_what_the_engine_makes_of_the_config(
    catalog: Snapshot, engine: EngineName, model: str, unasked: int, longest: int
) -> None:
    architecture, rules = catalog.model(model).architecture, rules_for(engine)

    assert (unasked_context(architecture, rules), longest_context(architecture, rules)) == (unasked, longest)


@pytest.mark.parametrize(("version", "longest"), [("0.29", 131_072), ("0.30", 32_768), (None, 32_768)])
def test_yarn_that_readers_add_is_part_of_the_stated_length_since_0_30(version: str | None, longest: int) -> None:
    """vLLM 0.29 and 0.30 `config/model.py`: Qwen2.5 with the scaling of its card, which leaves the length as it was."""
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768}
    architecture = parse_architecture({**LLAMA_CONFIG, "max_position_embeddings": 32_768, "rope_scaling": yarn})
    rules = rules_for("vllm", version)

    assert (unasked_context(architecture, rules), longest_context(architecture, rules)) == (longest, longest)


@pytest.mark.parametrize(
    ("stated", "input_tokens", "output_tokens", "field"),
    [
        (None, 100, 2_000, "output_tokens"),
        (None, 0, 2_000, "output_tokens"),
        (None, 2_000, 100, "input_tokens"),
        (None, 600, 600, "input_tokens"),
        (500, 0, 600, "max_model_len"),
        (1_001, 0, 0, "max_model_len"),
    ],
)
def test_the_longer_part_of_a_request_is_named(
    stated: int | None, input_tokens: int, output_tokens: int, field: str
) -> None:
    check_lengths(1_000, stated and 1_000, 400, 400)
    with pytest.raises(InvalidQuestionError) as refusal:
        check_lengths(1_000, stated, input_tokens + output_tokens, output_tokens)

    assert refusal.value.field == field
    assert ("max_position_embeddings" in str(refusal.value.accepted)) == (stated == 1_001)
