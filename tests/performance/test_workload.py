"""What one rank reads and computes."""

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.formats.quantization import UNQUANTIZED, Quantization
from service.engine.inputs import Layout
from service.performance.workload import peak_at, workload_of


def test_a_token_multiplies_every_weight_once(catalog: Snapshot) -> None:
    # Llama 3.1 8B: 8.03 billion parameters (huggingface.co/meta-llama/Llama-3.1-8B), 0.53 of them a table that is read
    # and not multiplied; the output head's FLOP are left out, since only one token of a prompt passes it.
    work = workload_of(catalog.model("llama-3.1-8b").architecture, UNQUANTIZED, catalog.gpu("h100"), Layout(), "auto")

    assert sum(it.weight_bytes for it in work.matrices) == pytest.approx(
        2 * (8_030_261_248 - 128_256 * 4_096), rel=1e-3
    )
    assert sum(it.flop_per_token for it in work.matrices) == pytest.approx(
        2 * (8_030_261_248 - 2 * 128_256 * 4_096), rel=1e-3
    )
    assert sum(it.token_bytes for it in work.mixers) == 131_072


def test_a_head_that_is_the_table_of_embeddings_is_read_by_each_token(catalog: Snapshot) -> None:
    # Llama 3.2 1B: 1.24 billion parameters with one table for both (huggingface.co/meta-llama/Llama-3.2-1B).
    work = workload_of(catalog.model("llama-3.2-1b").architecture, UNQUANTIZED, catalog.gpu("h100"), Layout(), "auto")

    assert sum(it.weight_bytes for it in work.matrices) == pytest.approx(2 * 1_235_814_400, rel=1e-3)


def test_of_experts_a_token_multiplies_those_it_is_routed_to(catalog: Snapshot) -> None:
    # Mixtral 8x7B (arXiv:2401.04088): 45.1 billion parameters in experts, two of eight chosen.
    architecture = catalog.model("mixtral-8x7b-v0.1").architecture
    (experts,) = workload_of(architecture, UNQUANTIZED, catalog.gpu("h100"), Layout(), "auto").experts

    assert experts.weight_bytes == 2 * 32 * 8 * 3 * 4_096 * 14_336
    assert experts.flop_per_token == experts.weight_bytes / 8 * 2
    assert (experts.routing.num_experts, experts.routing.num_experts_per_tok) == (8, 2)


def test_ranks_share_weights_and_heads(catalog: Snapshot) -> None:
    architecture, gpu = catalog.model("llama-3.1-8b").architecture, catalog.gpu("h100")
    one, four = (
        workload_of(architecture, UNQUANTIZED, gpu, Layout(tensor_parallel_size=tp), "fp8").mixers for tp in (1, 4)
    )

    assert [it.token_bytes for it in one] == [4 * it.token_bytes for it in four] == [65_536]


def test_a_scheme_multiplies_at_its_own_peak_or_the_next_wider_one(catalog: Snapshot) -> None:
    h100, a100 = catalog.gpu("h100"), catalog.gpu("a100")
    architecture = catalog.model("llama-3.1-8b").architecture
    fp8 = Quantization(scheme="fp8-tensor", ignored=("lm_head",))

    assert peak_at(h100, "fp8") == h100.peak_flop_per_s["fp8"]
    assert peak_at(a100, "fp8") == a100.peak_flop_per_s["bf16"]
    assert {it.peak_flop_per_s for it in workload_of(architecture, fp8, h100, Layout(), "auto").matrices} == {
        h100.peak_flop_per_s["fp8"], h100.peak_flop_per_s["bf16"],
    }  # fmt: skip
    assert {it.peak_flop_per_s for it in workload_of(architecture, fp8, a100, Layout(), "auto").matrices} == {
        a100.peak_flop_per_s["bf16"]
    }
