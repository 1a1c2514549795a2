"""What a cache holds by how many may run, told without whole plans."""

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.memory.held import requests_in_cache
from tests.engine.memory.test_plan import planned


@pytest.mark.parametrize("name", ["llama-3.1-8b-instruct", "gemma-3-27b", "qwen3-next-80b-a3b"])
@pytest.mark.parametrize("gpu", ["h100", "l4"])
def test_requests_in_the_cache_are_told_without_the_rest_of_the_plan(catalog: Snapshot, name: str, gpu: str) -> None:
    plan = planned(catalog, name, gpu=gpu, shorten=True)
    held = requests_in_cache(
        plan.model, plan.checkpoint, plan.gpu, plan.layout, plan.settings, plan.rules, context_tokens=plan.context_tokens,
        longest_tokens=0,
    )  # fmt: skip

    assert held is not None
    for seqs in (1, 256, 3_000):
        other = planned(catalog, name, gpu=gpu, shorten=True, max_num_seqs=seqs)
        assert held(seqs) == other.requests_in_cache


def test_what_the_length_served_decides_is_left_to_whole_plans(catalog: Snapshot) -> None:
    drafting = planned(catalog, "deepseek-v3", num_speculative_tokens=1, speculative_method="mtp")

    assert requests_in_cache(
        drafting.model, drafting.checkpoint, drafting.gpu, drafting.layout, drafting.settings, drafting.rules,
        context_tokens=5_000, longest_tokens=0,
    ) is None  # fmt: skip
