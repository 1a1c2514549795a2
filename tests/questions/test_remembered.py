"""What is remembered about models is bounded over all of them, and no answer depends on it."""

from dataclasses import replace
from itertools import product
from typing import Any

from service.catalog.snapshot import Snapshot
from service.engine.facts import ModelFacts
from service.questions.asked import Desk
from service.questions.remembered import Remembered
from service.questions.size import SIZE

MODELS = ("llama-3.1-8b-instruct", "qwen3-30b-a3b", "deepseek-v3", "nemotron-3-nano-30b-a3b")


def asked(model: str, users: int) -> dict[str, Any]:
    return {
        "model": model,
        "gpu": "h200",
        "concurrent_requests": users,
        "input_tokens": 700,
        "output_tokens": 70,
        "latency": "none",
    }


def values_of(*models: ModelFacts) -> int:
    return sum(len(model.derived) + len(model.architecture.derived) for model in models)


def own(model: ModelFacts) -> ModelFacts:
    """Return a model of which nothing was found out yet."""
    return replace(model, architecture=replace(model.architecture))


def test_the_models_not_asked_about_for_the_longest_are_forgotten(catalog: Snapshot) -> None:
    first, second, third = (own(catalog.model(name)) for name in MODELS[:3])
    remembered = Remembered(most_values=25)
    for model, numbers in ((first, 10), (second, 12), (first, 12), (third, 8)):
        for number in range(numbers):
            model.derived.by("numbers", 100).put(number, number)
        remembered.note([model])

    assert (values_of(first), values_of(second), values_of(third), len(remembered)) == (12, 0, 8, 20)


def test_a_model_alone_may_take_more(catalog: Snapshot) -> None:
    model, remembered = own(catalog.model(MODELS[0])), Remembered(most_values=0)
    model.derived.by("numbers", 100).put(1, 1)
    remembered.note([model])

    assert values_of(model) == len(remembered) == 1


def test_no_answer_depends_on_what_was_forgotten(catalog: Snapshot) -> None:
    questions = [SIZE.body.model_validate(asked(name, users)) for users, name in product((2, 900), MODELS)]
    desk, forgetful = Desk(None), Desk(None, most_values=0)
    before = [desk.answer(SIZE, each, catalog).json for each in questions]

    assert [forgetful.answer(SIZE, each, catalog).json for each in questions] == before
    assert sum(values_of(catalog.model(name)) > 0 for name in MODELS) == 1
