"""A library's exception never reaches a caller."""

import doctest

import pytest

from service.engine.inputs import Layout
from service.performance import refusals
from service.performance.measured import KernelLibrary
from service.performance.refusals import GENERAL, told
from service.performance.stored import Kernels, Refusal

NO_PART = "PerfDataNotAvailableError: no DSA module rows loaded from 1 source(s)"
NO_CLASS = "ValueError: The model's architecture Toy is not supported. Supported architectures: LlamaForCausalLM"
NO_RANKS = "PerfDataNotAvailableError: custom_allreduce data missing for 6 ranks"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("PerfDatabaseError: GEMM perf data missing for quant_mode fp8", "weight format"),
        ("KeyError: 'moe_quant_mode'", "experts"),
        ("RuntimeError: perf database error: MLA table is empty", "attention"),
        ("OSError: disk on fire", GENERAL),
    ],
)
def test_what_the_library_says_is_told_in_own_words(said: str, words: str) -> None:
    assert words in told(said)
    assert "Error" not in told(said)


def test_examples_hold() -> None:
    assert doctest.testmod(refusals).failed == 0


def kernels(tensor_parallel_size: int) -> Kernels:
    layout = Layout(tensor_parallel_size=tensor_parallel_size)
    return Kernels(config_json="{}", system="toy", layout=layout, engine="vllm", modes=({"gemm_quant_mode": "fp8"},))


@pytest.mark.parametrize("said", [NO_PART, NO_CLASS])
def test_what_is_refused_in_every_layout_is_tried_in_few(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[object] = []

    def refuses(*asked: object) -> Refusal:
        tried.append(asked)
        return Refusal(said)

    monkeypatch.setattr(KernelLibrary, "_tried", refuses)
    library = KernelLibrary()
    assert {library.build(kernels(ranks)) for ranks in (8, 4, 2, 1)} == {Refusal(said)}
    assert len(tried) == 3  # the layout's own, matrices alone, the model on one rank


@pytest.mark.parametrize("order", [(6, 8), (8, 6)])
def test_a_refusal_is_the_same_whatever_was_asked_before(
    order: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(_library: KernelLibrary, _config: object, _kernels: Kernels, layout: Layout, _modes: object) -> Refusal:
        return Refusal(NO_RANKS if layout.tensor_parallel_size == 6 else NO_PART)

    monkeypatch.setattr(KernelLibrary, "_tried", refuses)
    library = KernelLibrary()
    assert [library.build(kernels(ranks)) for ranks in order] == [Refusal(NO_PART), Refusal(NO_PART)]
