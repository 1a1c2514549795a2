"""What the library of measured kernels is asked for, beside what it says itself of every point."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest

from service.engine.arithmetic import MILLISECONDS_PER_S
from service.engine.inputs import Layout
from service.engine.time.records import ATTENDED, CONTEXTS, REQUESTS, TOKENS
from service.performance import library as library_of_kernels
from service.performance import measured
from service.performance.library import SHORT_PROMPT_TOKENS, library
from service.performance.measured import KernelLibrary
from service.performance.stored import Kernels, Refusal
from service.performance.tables import StepTables
from tests.performance.test_tables import LLAMA

# As published with Qwen3 30B A3B, in two layers.
EXPERTS = {
    **LLAMA,
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "head_dim": 128,
    "num_key_value_heads": 4,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 768,
    "vocab_size": 151936,
}


def kernels(config: dict[str, object], layout: Layout) -> Kernels:
    return Kernels(config_json=json.dumps(config), system="h100_sxm", layout=layout, engine="vllm", modes=({},))


@pytest.mark.parametrize(
    ("config", "layout"),
    [
        (LLAMA, Layout(tensor_parallel_size=4)),
        (LLAMA, Layout(tensor_parallel_size=2, pipeline_parallel_size=2)),
        (EXPERTS, Layout(tensor_parallel_size=2, data_parallel_size=2, expert_parallel=True)),
        (EXPERTS, Layout(data_parallel_size=8)),
    ],
    ids=["by itself", "stages", "copies that deal experts out", "copies"],
)
def test_attention_shared_by_layouts_is_what_the_library_says_of_each(
    tmp_path: Path, config: dict[str, object], layout: Layout
) -> None:
    found = KernelLibrary().build(kernels(config, layout))
    assert isinstance(found, StepTables)

    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    experts = layout.tensor_parallel_size * layout.data_parallel_size
    own = library().compiled(
        None,
        str(tmp_path),
        "h100_sxm",
        "vllm",
        tp_size=layout.tensor_parallel_size,
        pp_size=layout.pipeline_parallel_size,
        attention_dp_size=layout.data_parallel_size,
        moe_tp_size=1 if layout.expert_parallel else experts,
        moe_ep_size=experts if layout.expert_parallel else 1,
    )
    decode = [[own.decode_step_latency(int(r), int(c), 2) / MILLISECONDS_PER_S for c in CONTEXTS] for r in REQUESTS]
    short = int(SHORT_PROMPT_TOKENS)
    tokens = [
        own.predict_prefill_latency(max(int(t) // short, 1), min(int(t), short)) / MILLISECONDS_PER_S for t in TOKENS
    ]
    whole = [own.predict_prefill_latency(1, 2 * int(a)) for a in ATTENDED]
    cut = [own.predict_prefill_latency(max(2 * int(a) // short, 1), short) for a in ATTENDED]
    attention = np.maximum(np.array(whole) - cut, 0.0) / MILLISECONDS_PER_S / (2 * np.array(ATTENDED))

    np.testing.assert_allclose(found.decode, decode, rtol=1e-13)
    np.testing.assert_allclose(found.tokens, tokens, rtol=1e-15)
    np.testing.assert_allclose(found.attention, attention, rtol=1e-9, atol=1e-18)


def test_layouts_with_the_same_experts_are_refused_by_one_try(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Layout] = []

    def refuses(_library: KernelLibrary, _config: object, _kernels: Kernels, layout: Layout, _modes: object) -> Refusal:
        tried.append(layout)
        ranks = layout.tensor_parallel_size * layout.data_parallel_size
        return Refusal(f"PerfDataNotAvailableError: {measured.NO_EXPERTS} {{ ranks: {ranks} }}")

    monkeypatch.setattr(KernelLibrary, "_tried", refuses)
    asked = KernelLibrary()
    found = {
        asked.build(
            kernels(EXPERTS, Layout(tensor_parallel_size=tp, pipeline_parallel_size=pp, data_parallel_size=8 // tp))
        )
        for tp in (8, 4, 2)
        for pp in (1, 2, 3)
    }

    assert len(found) == 1
    # The first's own, matrices alone, one rank, its experts alone, and for the other two the same cut the other way.
    assert tried[:3] == [Layout(tensor_parallel_size=8), Layout(), Layout()]
    assert tried[3] == Layout(data_parallel_size=8)
    assert len(tried) <= 6


def test_a_config_is_read_once_and_its_file_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    asked = KernelLibrary()
    for ranks in (1, 2, 4):
        assert isinstance(asked.build(kernels(LLAMA, Layout(tensor_parallel_size=ranks))), StepTables)
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(library_of_kernels, "MOST_READ", 1)
    # Configs that one forgets, the library forgets for all: each who asks again has them read again.
    other = KernelLibrary().build(kernels({**LLAMA, "num_hidden_layers": 4}, Layout()))
    again = asked.build(kernels(LLAMA, Layout(tensor_parallel_size=8)))
    assert isinstance(other, StepTables)
    assert isinstance(again, StepTables)
