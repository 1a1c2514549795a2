"""Every layer split over several servers: taken where it takes fewer GPUs, and never beaten when it is stated.

SGLang `docs/basic_usage/deepseek_v3.md` serves DeepSeek-V3 so on two servers of eight H100, and on four of eight A100.
"""

from dataclasses import replace

import pytest

from service.engine.answers.size import size
from service.engine.fleet.questions import StatedSettings
from service.engine.inputs import Layout, Limits, Load, StatedLayout
from tests.engine.conftest import Asked, arrivals, users


@pytest.mark.parametrize(
    ("model", "gpu", "load", "limits", "sizes"),
    [
        ("command-r-plus", "h200", users(37, 10_089, 515), Limits(ttft_s=1.0, tpot_s=0.1), (16,)),
        ("qwen2.5-72b", "l4", users(173, 372, 675), Limits(ttft_s=5.0, tpot_s=0.05), (16, 32)),
        ("command-r-v01", "rtx-5060-ti", users(6, 60, 2_030), Limits(ttft_s=1.0, tpot_s=0.03), (8,)),
        ("opt-66b", "gh200-144gb", users(14, 113, 1_560), Limits(tpot_s=0.03), (2, 4, 8)),
    ],
    ids=["two servers of eight", "four servers of eight", "two servers of four", "servers of one"],
)
def test_layers_are_split_over_servers_where_that_takes_fewer_gpus(
    asked: Asked, model: str, gpu: str, load: Load, limits: Limits, sizes: tuple[int, ...]
) -> None:
    """Within one server nothing keeps these limits, or 40 GPUs do where 16 are enough."""
    question = asked(model, gpu, load=load, limits=limits)
    found = size(question)
    stated = (size(replace(question, layout=StatedLayout(tensor_parallel_size=ranks))) for ranks in sizes)

    assert found.feasible
    assert found.layout.tensor_parallel_size > question.gpu.gpus_per_node
    assert all(found.gpus <= each.gpus for each in stated if each.feasible)
    assert any("between them" in warning for warning in found.warnings)


def test_what_stays_within_servers_is_told_beside_it(asked: Asked) -> None:
    found = size(asked("command-r-plus", "h200", load=users(37, 10_089, 515), limits=Limits(ttft_s=1.0, tpot_s=0.1)))
    within = size(
        asked(
            "command-r-plus",
            "h200",
            load=users(37, 10_089, 515),
            limits=Limits(ttft_s=1.0, tpot_s=0.1),
            layout=StatedLayout(tensor_parallel_size=8, pipeline_parallel_size=1),
        )
    )

    assert found.gpus < within.gpus
    assert any(f"the next usual layout takes {within.gpus} GPUs" in warning for warning in found.warnings)


def test_two_desks_serve_a_large_model_together(asked: Asked) -> None:
    """NVIDIA's DGX Spark playbooks serve Llama 3.3 70B on two of them, each layer over both."""
    found = size(asked("llama-3.3-70b", "gb10", load=users(4, 500, 500)))

    assert found.layout == Layout(tensor_parallel_size=2)
    assert "--nnodes 2" in (found.command or "")


def test_one_request_at_a_time_waits_for_no_prompt_between_its_tokens(asked: Asked) -> None:
    """Five servers that run one request each keep the pace; 18 were found where prompts were counted against it."""
    question = asked(
        "llama-3.3-70b",
        "rtx-5090",
        load=arrivals(0.5, 2_000, 200),
        limits=Limits(tpot_s=0.02),
        layout=StatedLayout(tensor_parallel_size=8, pipeline_parallel_size=1),
    )
    settings = [StatedSettings(max_num_seqs=1), StatedSettings(max_num_seqs=1, max_num_batched_tokens=1_024)]
    pinned = [size(replace(question, settings=each)) for each in settings]

    assert size(question).gpus == min(each.gpus for each in pinned if each.feasible)
