"""The terms of a ledger are those it is the sum of."""

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import Layout, StatedSettings, ledger_terms, plan_replica


def test_terms_are_those_of_the_plan(catalog: Snapshot) -> None:
    model, gpu = catalog.model("llama-3.1-8b"), catalog.gpu("h100")
    stated = StatedSettings(max_num_seqs=64, max_num_batched_tokens=2_048)
    plan = plan_replica(model, gpu, Layout(tensor_parallel_size=2), stated, rules_for("vllm"))

    terms = ledger_terms(plan)

    assert terms.activation_bytes == plan.memory.activation_bytes
    assert terms.non_torch_bytes == plan.memory.non_torch_bytes
    # huggingface.co/meta-llama/Llama-3.1-8B: 128,256 words, width 4,096, 32 layers without experts
    assert terms.sampled_logits == 64 * 128_256
    assert terms.hidden_bytes == 2_048 * 4_096 * 2
    assert terms.captured_batch == 128
    assert terms.layers.dense == 32
    assert not terms.profiles_tower


def test_a_mixture_has_rules_of_its_own(catalog: Snapshot) -> None:
    rules = rules_for("vllm", "0.27")
    model, gpu = catalog.model("qwen3-30b-a3b"), catalog.gpu("h100")

    terms = ledger_terms(plan_replica(model, gpu, Layout(), StatedSettings(), rules))

    assert terms.rules is rules.for_mixtures
    assert terms.layers.experts == 48
