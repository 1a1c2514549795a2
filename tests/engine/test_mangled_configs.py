"""Configs that nobody published: read within bounds, or refused by name, whatever stands in them."""

import json
import os
from copy import deepcopy
from functools import cache
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from service.catalog.seed_files import seed_entries
from service.catalog.snapshot import Snapshot
from service.engine import parse_architecture
from service.engine.errors import EngineError
from service.questions.asked import Desk
from service.questions.refusals import RefusalError
from service.questions.size import SIZE
from tests.work import calls_of

NUM_CONFIGS = int(os.environ.get("MANGLED_CONFIGS", "60"))
MOST_CALLS = 400_000  # of the parser; a tenth of a second
ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 1 << 31, 1 << 63, 10**30, 0.5, -0.0, 1e308, 5e-324, "", "0", "full", "x" * 5_000, "9" * 5_000,
    "M" * 10_000, [], {}, [0], [-1], [[]], [None] * 300, list(range(5_000)), ["full_attention"] * 50, {"": ""}, {"a": {"a": {"a": 1}}},
    [[[[[[1]]]]]], "re:(a+)+$", {"quant_method": "fp8", "activation_scheme": "dynamic"}, {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [0, -1]}, "bfloat16", "float8_e4m3fn",
)  # fmt: skip


@cache
def published() -> tuple[str, ...]:
    """Return the configs of the catalog, as texts."""
    return tuple(json.dumps(model.config) for model in seed_entries()[0])


def paths(node: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to every value of a config, lists by their first few."""
    items = node.items() if isinstance(node, dict) else enumerate(node[:3]) if isinstance(node, list) else ()
    below = [path for name, value in items for path in paths(value, (*before, name))]
    return [before, *below] if before else below


@st.composite
def mangled(draw: st.DrawFn) -> str:
    """Return a published config, as text, with a few values replaced, removed, or put where others stand."""
    config: dict[str, Any] = json.loads(draw(st.sampled_from(published())))
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(paths(config)))
        node: Any = config
        for step in way:
            node = node[step]
        match draw(st.sampled_from(("odd", "odd", "removed", "another's"))):
            case "odd":
                node[last] = deepcopy(draw(st.sampled_from(ODD)))  # what is put in may be changed next
            case "removed":
                del node[last]
            case _:
                other = json.loads(draw(st.sampled_from(published())))
                node[last] = other.get(last, next(iter(other.values())))
        if not config:
            break
    return json.dumps(config)


@given(text=mangled())
@settings(
    max_examples=NUM_CONFIGS,
    deadline=None,
    derandomize="MANGLED_CONFIGS" not in os.environ,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
def test_a_mangled_config_is_read_within_bounds_or_refused_by_name(catalog: Snapshot, text: str) -> None:
    config = json.loads(text)

    def read() -> None:
        try:
            parse_architecture(config)
        except EngineError as error:
            assert str(error)  # refused, and why

    assert calls_of(read) < MOST_CALLS
    try:
        load = {"gpu": "h100", "concurrent_requests": 8, "input_tokens": 1_000, "output_tokens": 200}
        asked = SIZE.body.model_validate({"model_config": config, **load})
        answer = Desk(None).answer(SIZE, asked, catalog)
    except (EngineError, RefusalError, ValidationError) as error:
        assert str(error)  # refused, and why
    else:
        numbers = [value for _, value in answer.gauges()]
        assert all(value >= 0 and value == value for value in numbers), config  # noqa: PLR0124 - not a number
