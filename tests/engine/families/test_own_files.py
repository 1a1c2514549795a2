"""Which repositories are in their publisher's own format, and so are started with flags that say so."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.families.own_files import IN_OWN_FORMAT
from service.engine.fleet.choice import deployments
from service.engine.fleet.command import launch
from service.engine.fleet.ranking import best
from service.engine.inputs import EngineName
from tests.engine.conftest import Asked, users

TOLD = "--tokenizer-mode mistral --config-format mistral --load-format mistral"


# vLLM 0.11.0 `transformers_utils/tokenizer.py`, 0.12.0 `tokenizers/registry.py`; SGLang 0.5.23 `mistral_utils.py`.
@pytest.mark.parametrize(
    ("model", "engine", "version", "is_told"),
    [
        ("devstral-small-2507", "vllm", "0.10.2", True),
        ("magistral-small-2506", "vllm", "0.8.5", True),
        ("devstral-small-2507", "vllm", "0.12.0", False),
        ("devstral-small-2507", "vllm", None, False),
        ("devstral-small-2507", "sglang", None, False),
        ("mistral-small-24b-instruct-2501", "vllm", "0.10.2", False),  # it has a tokenizer.json too
    ],
)
def test_a_command_names_the_format_where_the_version_does_not_look_for_it(
    asked: Asked, model: str, engine: EngineName, version: str | None, *, is_told: bool
) -> None:
    question = asked(model, "h100", load=users(4), timers=None, rules=rules_for(engine, version))
    command = str(launch(best(deployments(question), question), frozenset()).command)

    assert (TOLD in command) == is_told
    assert command != "None"


def test_every_repository_listed_is_called_by_its_name(catalog: Snapshot) -> None:
    assert all(catalog.called_models.read(name) for name in IN_OWN_FORMAT)
