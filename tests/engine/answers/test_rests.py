"""An answer names the stored measurements that it rests on, and says how near to them it comes."""

from service.catalog.engine_rules import rules_for
from service.engine import Layout, StatedSettings, plan_replica
from service.engine.answers.rests import memory_measured_here, steps_measured_here, terms_source
from service.engine.engines.measured_here import MEASURED_HERE, Deployment, MeasuredMemory
from service.engine.engines.rules import as_measured
from service.engine.time.results import Basis
from tests.conftest import shared_catalog


def test_a_ledger_names_the_start_up_it_rests_on() -> None:
    catalog, rules = shared_catalog(), rules_for("vllm")
    model, gpu = catalog.model("llama-3.1-8b"), catalog.gpu("h100")
    of = Deployment(model=model.id, gpu=gpu.id, layout=Layout(), weight_format="bf16", kv_cache_dtype="bf16")
    here = MeasuredMemory(id="a1", source="a log", of=of, error_fraction=0.01, non_torch_bytes=1 << 20)
    before = plan_replica(model, gpu, Layout(), StatedSettings(), rules)
    after = plan_replica(model, gpu, Layout(), StatedSettings(), as_measured(rules, (here,)))

    assert list(memory_measured_here(before)) == []
    assert [(note.value, note.origin) for note in memory_measured_here(after)] == [
        ("a1", "measured"),
        (0.01, "measured"),
    ]
    assert before.memory.kv_cache_bytes - after.memory.kv_cache_bytes == 1 << 20
    assert terms_source(before) == rules.measured_source
    assert terms_source(after) == f"{rules.measured_source}; changed by the stored a1, as measured_memory tells"


def test_times_that_were_measured_here_say_their_error() -> None:
    basis = Basis(
        name=MEASURED_HERE, is_measured=True, source="", note="", overhead_source="", expected_error_fraction=0.03
    )

    assert [note.value for note in steps_measured_here(basis)] == [0.03]
