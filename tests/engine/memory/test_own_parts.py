"""What SGLang's ranks hold whole of a tower, against its sources."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.inputs import EngineName
from service.engine.memory.own_parts import as_held

# K2.5's config: `vt_num_hidden_layers` 27, `vt_hidden_size` 1152, `vt_intermediate_size` 4304. SGLang 0.5.9 to 0.5.23
# `models/kimi_k25.py` makes its `MLP2` of `nn.Linear`, and its attention of `VisionAttention`, which ranks split; the
# bias of the second matrix is whole in either engine.
FEED_FORWARD = 27 * (2 * 1_152 * 4_304 + 4_304)


@pytest.mark.parametrize(
    ("engine", "version", "beyond_vllm"),
    [("sglang", "0.5.9", 7 * FEED_FORWARD // 8), ("sglang", "0.5.23", 7 * FEED_FORWARD // 8), ("vllm", "0.33", 0)],
)
def test_sglang_s_ranks_hold_k2_5_s_feed_forward_parts_whole(
    catalog: Snapshot, engine: EngineName, version: str, beyond_vllm: int
) -> None:
    model = catalog.model("kimi-k2.5").architecture
    towers = [model.encoder, as_held(model, rules_for(engine, version).plan).encoder]
    split, spread = [tower.parameters(8) for tower in towers if tower is not None]

    assert spread - split == pytest.approx(beyond_vllm, abs=8)


@pytest.mark.parametrize("name", ["qwen3.5-397b-a17b", "llama-3.1-8b"])
def test_other_towers_are_split_as_vllm_s(catalog: Snapshot, name: str) -> None:
    model = catalog.model(name).architecture

    assert as_held(model, rules_for("sglang", "0.5.23").plan).encoder is model.encoder
    assert as_held(model, rules_for("vllm", "0.33").plan) is model
