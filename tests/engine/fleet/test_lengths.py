"""Lengths that nobody stated: a long prompt and a short answer, which fill the context."""

from dataclasses import replace

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.fleet.lengths import has_lengths, lengths_of, lengths_within, split_of
from service.engine.fleet.questions import CapacityQuestion, StatedSettings
from service.engine.inputs import Layout, Limits, Load, StatedLayout
from tests.engine.time.conftest import plan_of

NOBODY = Load(concurrent_requests=None, request_rate_per_s=None, input_tokens=1, output_tokens=1)


@pytest.fixture
def question(catalog: Snapshot) -> CapacityQuestion:
    plan = plan_of(catalog, Layout())
    return CapacityQuestion(
        model=catalog.model("llama-3.1-8b"),
        gpu=plan.gpu,
        gpu_count=1,
        load=NOBODY,
        input_tokens=None,
        output_tokens=None,
        limits=Limits(),
        layout=StatedLayout(),
        settings=StatedSettings(),
        rules=plan.rules,
    )


@pytest.mark.parametrize("context", [1, 2, 9, 2_048, 4_100, 131_072])
def test_a_split_context_is_full_and_both_parts_hold_a_token(context: int) -> None:
    prompt, answer = lengths_within(context)

    assert prompt >= 1
    assert 1 <= answer <= 512
    assert prompt + answer == max(context, 2)
    assert split_of(NOBODY, context) == replace(NOBODY, input_tokens=prompt, output_tokens=answer)


def test_what_is_stated_is_kept_and_the_rest_of_it_is_nothing(catalog: Snapshot, question: CapacityQuestion) -> None:
    plan = plan_of(catalog, Layout())
    stated = replace(question, input_tokens=700, output_tokens=None)

    assert has_lengths(stated)
    assert not has_lengths(question)
    assert (lengths_of(stated, plan).input_tokens, lengths_of(stated, plan).output_tokens) == (700, 0)
    assert lengths_of(question, plan) == split_of(NOBODY, plan.context_tokens)
