"""Small requests that once took minutes or gigabytes: each takes little, counted in calls and bytes, or is refused."""

import time
from contextlib import suppress
from typing import Any

import pytest

from service.catalog.snapshot import Snapshot
from service.engine import parse_architecture
from service.engine.errors import EngineError
from service.performance.kernel_tables import InProcess, KernelTables
from service.performance.stored import TableFiles
from service.performance.timers import KernelTimers
from service.questions.asked import Desk, Question
from service.questions.examples import LLAMA_CONFIG
from service.questions.recommend import RECOMMEND
from service.questions.size import SIZE
from tests.work import calls_of, memory_of

LOAD: dict[str, Any] = {"gpu": "h100", "concurrent_requests": 8, "input_tokens": 1_000, "output_tokens": 200}
DEEP = {**LLAMA_CONFIG, "num_hidden_layers": 400}
TINY = {
    **LLAMA_CONFIG,
    "num_hidden_layers": 1,
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_attention_heads": 1,
    "num_key_value_heads": 1,
    "head_dim": 64,
    "vocab_size": 100,
    "max_position_embeddings": 200_000_000,
}
NEMOTRON_H = {
    **LLAMA_CONFIG,
    "architectures": ["NemotronHForCausalLM"],
    "mamba_num_heads": 128,
    "mamba_head_dim": 64,
    "ssm_state_size": 128,
    "n_groups": 8,
    "conv_kernel": 4,
}
MANY_NAMES = [f"model.layers.{number}.self_attn.q_proj" for number in range(8_000)]
MIXED = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}
FP8 = {"quant_algo": "FP8"}
MEGA = 1_000_000


def pasted(config: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"model_config": config, **LOAD, **changes}


BOMBS: dict[str, tuple[dict[str, Any], float]] = {  # millions of calls; a9aece5 took ten times as many, or never ended
    "one token a step": (
        {
            "model": "qwen2.5-7b",
            "gpu": "h100",
            "request_rate_per_s": 1,
            "ttft_s": 1_000,
            "input_tokens": 30_000,
            "output_tokens": 200,
            "max_num_batched_tokens": 1,
            "max_num_seqs": 1,
        },
        5,
    ),
    "as many layers as there may be": (pasted(DEEP), 5),
    "a list of what is ignored": (
        pasted(
            {
                **DEEP,
                "quantization_config": {
                    "quant_method": "fp8",
                    "activation_scheme": "dynamic",
                    "ignored_layers": MANY_NAMES,
                },
            }
        ),
        8,
    ),
    "a scheme for every module": (
        pasted({**DEEP, "quantization_config": {**MIXED, "quantized_layers": dict.fromkeys(MANY_NAMES, FP8)}}),
        8,
    ),
    "a pattern of as many layers as there may be": (pasted({**NEMOTRON_H, "hybrid_override_pattern": "M*-M" * 100}), 8),
    "a hundred million tokens": (pasted(TINY, input_tokens=1, output_tokens=100_000_000), 2),
    "a hundred million tokens in steps of two": (
        pasted(
            TINY,
            input_tokens=10**8,
            output_tokens=10**8,
            max_num_batched_tokens=2,
            max_num_seqs=2,
            request_rate_per_s=1,
        )
        | {"concurrent_requests": None},
        2,
    ),
    "a million sequences": (
        pasted(
            TINY,
            concurrent_requests=10_000_000,
            input_tokens=1,
            output_tokens=1,
            max_num_seqs=1_000_000,
            max_num_batched_tokens=10_000_000,
        ),
        2,
    ),
    "a list longer than any model's": (pasted({**DEEP, "mlp_only_layers": list(range(100_000))}), 5),
    "a pattern of 10,000 layers": (pasted({**NEMOTRON_H, "hybrid_override_pattern": "M" * 10_000}), 0.1),
    "moe_layers_enum of 5,000 digits": (
        pasted({**LLAMA_CONFIG, "architectures": ["Step3TextForCausalLM"], "moe_layers_enum": "9" * 5_000}),
        0.2,
    ),
}


@pytest.fixture(scope="module")
def timers() -> KernelTimers:
    return KernelTimers(KernelTables(TableFiles(None), InProcess()))


def ask(desk: Desk, question: Question, asked: dict[str, Any], catalog: Snapshot) -> None:
    """Ask, and take a refusal for an answer."""
    with suppress(EngineError):
        desk.answer(question, question.body.model_validate(asked), catalog)


@pytest.mark.parametrize(("asked", "most"), BOMBS.values(), ids=BOMBS)
def test_a_small_request_is_little_work(
    catalog: Snapshot, timers: KernelTimers, asked: dict[str, Any], most: float
) -> None:
    desk = Desk(timers)
    ask(desk, SIZE, {**LOAD, "model": "qwen2.5-7b"}, catalog)  # what is read once

    assert calls_of(lambda: ask(desk, SIZE, asked, catalog)) < most * MEGA


DEAREST = ("as many layers as there may be", "a list of what is ignored", "a scheme for every module", "a pattern of as many layers as there may be")  # fmt: skip
MOST_MS = 300


@pytest.mark.parametrize("name", DEAREST)
def test_the_dearest_config_that_is_accepted_is_read_within_300_ms(name: str) -> None:
    config = BOMBS[name][0]["model_config"]
    parse_architecture({**config, "vocab_size": 64_000})  # what is read once

    took_ms = []
    for number in range(3):
        began_s = time.thread_time()
        parse_architecture({**config, "vocab_size": 64_001 + number})
        took_ms.append(1e3 * (time.thread_time() - began_s))

    assert min(took_ms) < MOST_MS, took_ms


def test_a_recommendation_over_every_format_is_bounded_work(catalog: Snapshot) -> None:
    everything = {
        "model_config": {**LLAMA_CONFIG, "num_hidden_layers": 100},
        "concurrent_requests": 20,
        "input_tokens": 1_000,
        "output_tokens": 200,
        "weight_formats": ["bf16", "fp16", "fp8", "int8", "int4", "mxfp4", "nvfp4"],
        "kv_cache_dtypes": ["auto", "fp8"],
        "limit": 1_000,
    }

    assert calls_of(lambda: ask(Desk(None), RECOMMEND, everything, catalog)) < 60 * MEGA


MEMORY_BOMBS = ("a hundred million tokens", "a hundred million tokens in steps of two", "a million sequences")


@pytest.mark.parametrize("name", MEMORY_BOMBS)
def test_a_small_request_takes_little_memory_and_leaves_less(
    catalog: Snapshot, timers: KernelTimers, name: str
) -> None:
    desk = Desk(timers)
    ask(desk, SIZE, {**LOAD, "model": "qwen2.5-7b"}, catalog)

    most, left = memory_of(lambda: ask(desk, SIZE, BOMBS[name][0], catalog))

    assert most < 400 << 20
    assert left < 32 << 20


def test_three_hundred_pasted_configs_of_a_megabyte_leave_little_memory(catalog: Snapshot) -> None:
    desk = Desk(None)

    def asked() -> None:
        for number in range(60):  # a fifth of them shows it
            ask(desk, SIZE, pasted({**LLAMA_CONFIG, "vocab_size": 1_000 + number, "padding": "x" * 900_000}), catalog)

    _, left = memory_of(asked)

    assert left < 20 << 20  # 54 MB of texts were read
