"""States of Mamba layers come on top of tables that leave them out, as fast as their kernel was seen to be."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import Deployed, EngineName, Layout, StatedSettings, deployed, plan_replica
from service.performance.states import untabled_states


def of(catalog: Snapshot, model: str, engine: EngineName, version: str) -> Deployed:
    plan = plan_replica(
        catalog.model(model), catalog.gpu("h200"), Layout(), StatedSettings(), rules_for(engine, version),
        input_tokens=1_000, output_tokens=100,
    )  # fmt: skip
    return deployed(plan)


@pytest.mark.parametrize(("model", "version"), [("qwen3.5-9b", "0.17.1"), ("llama-3.1-8b", "0.24.0")])
def test_other_layers_leave_nothing_out(catalog: Snapshot, model: str, version: str) -> None:
    assert not untabled_states(of(catalog, model, "vllm", version))


@pytest.mark.parametrize(
    ("version", "states", "seconds"),
    [
        ("0.23.0", 8_192, 188.2e-6),
        ("0.23.0", 4_096, 94.81e-6),
        ("0.24.0", 8_192, 142.7e-6),
        ("0.24.0", 4_096, 73.64e-6),
    ],
)
def test_states_take_what_their_kernel_was_seen_to_take(
    catalog: Snapshot, version: str, states: int, seconds: float
) -> None:
    """Pull request 44251 of vLLM: states of 64 x 128 in 32 bits on H200, by a rule of thumb and tuned."""
    more = untabled_states(of(catalog, "nemotron-3-nano-30b-a3b", "vllm", version))

    assert states * 2 * 64 * 128 * 4 / 4.8e12 * more == pytest.approx(seconds, rel=0.03)


def test_sizes_that_were_tuned_are_kept_by_vllm_alone(catalog: Snapshot) -> None:
    tuned = untabled_states(of(catalog, "nemotron-3-nano-30b-a3b", "vllm", "0.24.0"))

    assert tuned < untabled_states(of(catalog, "nemotron-3-nano-30b-a3b", "sglang", "0.5.10"))
