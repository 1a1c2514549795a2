"""Kimi: what engines find in its configs."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.fleet.questions import StatedSettings
from service.engine.fleet.settings import resolve
from service.engine.inputs import Layout
from service.engine.memory.share import with_own_share


# SGLang's own config of K2.5 names layers and width that checkpoints write under other names; a start without flags on
# eight MI355X printed mem_fraction_static=0.8260405859375
@pytest.mark.parametrize(("model", "size"), [("kimi-k2.6", (27, 1_152)), ("kimi-k3", (27, 1_024))])
def test_sglang_finds_the_size_of_a_tower_in_its_own_config(
    catalog: Snapshot, model: str, size: tuple[int, int]
) -> None:
    architecture = catalog.model(model).architecture
    gpu, rules = catalog.gpu("mi355x"), rules_for("sglang", "0.5.9" if size == (27, 1_152) else None)
    settings = resolve(catalog.model(model), gpu, StatedSettings(), rules).settings
    shared = with_own_share(architecture, gpu, Layout(tensor_parallel_size=8), settings, rules)

    assert architecture.tower_size == size
    assert size != (27, 1_152) or shared.gpu_memory_utilization == pytest.approx(0.8260405859375, abs=1e-6)
