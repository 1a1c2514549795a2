"""Which checkpoints bring code of their own, and so are started with leave to run it."""

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.families.own_code import BRING_CODE
from service.engine.families.registry import REGISTRY
from service.engine.fleet.choice import deployments
from service.engine.fleet.command import launch
from service.engine.fleet.ranking import best
from tests.engine.conftest import Asked, users


def test_every_class_listed_is_one_of_ours() -> None:
    assert set(REGISTRY.families) >= BRING_CODE


@pytest.mark.parametrize(
    ("model", "gpu", "is_told"),
    [
        # base_args of vLLM's recipes
        ("kimi-k2", "h200", True),
        ("minimax-m2", "h100", True),
        ("mimo-v2-flash", "h200", True),
        ("step-3.5-flash", "h200", False),  # vLLM's tests start it without
        ("qwen3-32b", "h100", False),
        ("gpt-oss-120b", "h100", False),
    ],
)
def test_a_command_gives_leave_where_it_is_needed(asked: Asked, model: str, gpu: str, *, is_told: bool) -> None:
    question = asked(model, gpu, load=users(4), timers=None)
    command = str(launch(best(deployments(question), question), frozenset()).command)

    assert ("--trust-remote-code" in command) == is_told


def test_models_of_the_catalog_are_told_apart(catalog: Snapshot) -> None:
    assert catalog.model("kimi-linear-48b-a3b-instruct").architecture.brings_code
    assert not catalog.model("llama-3.3-70b").architecture.brings_code
