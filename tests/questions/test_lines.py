"""The lines of a deployment, whether it fits, is too large or too slow."""

from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from service.engine.answers.pools import Pools
from service.engine.answers.results import Lever, Sizing
from service.engine.inputs import Layout
from service.engine.time.results import Distribution, Latency, LoadState
from service.questions.lines import deployment_lines, shape_of
from service.questions.recommend import RecommendQuery
from service.questions.size import SizeAnswer, SizeQuery
from service.questions.sources import Sources


@pytest.fixture(scope="module")
def sizing(sources: Sources) -> Sizing:
    asked = SizeQuery(model="llama-3.1-8b", gpu="h100", concurrent_requests=8, input_tokens=1000, output_tokens=200)
    return asked.answer(sources).result


def lines(sizing: Sizing, **change: Any) -> list[str]:
    changed = replace(sizing, **change)
    return [*deployment_lines(changed, shape_of(changed))]


def test_what_fits_is_told_with_its_flags(sizing: Sizing) -> None:
    told = lines(sizing, command=None, engine_args=("--served-model-name", "two words"))
    started = lines(sizing)

    assert told[1] == f"layout: 1 replica of TP1 PP1; binds: {sizing.binding_constraint}"
    assert told[2].startswith("per GPU [GiB]: weights 14.99, cache ")
    assert "engine args: --served-model-name 'two words'" in told
    assert f"command: {sizing.command}" in started
    assert not any(line.startswith("engine args") for line in started)


@pytest.mark.parametrize(
    "name",
    [
        "mistral-small-3.2",
        "mistralai/Magistral-Small-2509",
        "unsloth/Mistral-Small-3.2-24B-Instruct-2506",
        'Mistral "Small" 3.2',
    ],
)
def test_the_first_line_names_what_was_asked(client: TestClient, name: str) -> None:
    """An edition, or another's repository, is sized as the model of its shape, whose id alone would look like a slip."""
    load: dict[str, Any] = {
        "model": name, "concurrent_requests": 8, "input_tokens": 900, "output_tokens": 90, "format": "text",
    }  # fmt: skip
    small = {**load, "gpu": "l4", "tensor_parallel_size": 1, "pipeline_parallel_size": 1}
    answers = (
        client.get("/size", params={**load, "gpu": "h100"}),
        client.get("/size", params=small),
        client.get("/replicas", params={**load, "gpu": "h100"}),
        client.get("/recommend", params={**load, "gpus": "h100", "weight_formats": "bf16"}),
    )

    for answer in answers:
        assert f"{name} (sized as mistral-small-3.1-24b-instruct-2503)" in answer.text.splitlines()[0]


def test_a_command_of_several_nodes_stands_on_lines_of_its_own(sizing: Sizing) -> None:
    told = lines(sizing, command="# on node 0 of 2\nfirst\n# on node 1 of 2\nsecond")
    at = told.index("command:")

    assert told[at + 1 : at + 5] == ["# on node 0 of 2", "first", "# on node 1 of 2", "second"]


def test_a_price_tells_its_terms(sources: Sources) -> None:
    asked: dict[str, Any] = {
        "model": "llama-3.1-8b", "gpu": "h100", "concurrent_requests": 8, "input_tokens": 1000, "output_tokens": 200,
    }  # fmt: skip

    def price(**terms: object) -> str:
        told = SizeQuery(**asked, **terms).answer(sources).lines()
        return next(line for line in told if line.startswith("price: "))

    assert price(purchases=["spot"]).endswith(", spot")
    assert price(tiers=["community"]).endswith(", community")
    assert price(discount_fraction=0.3).endswith(", 30 % off the list price")
    assert price()[-2:].isdigit()  # its date, and no terms


def test_a_price_of_the_callers_own_names_no_provider(sources: Sources) -> None:
    asked: dict[str, Any] = {
        "model": "llama-3.1-8b", "concurrent_requests": 8, "input_tokens": 1000, "output_tokens": 200,
        "usd_per_gpu_hour": 1.75,
    }  # fmt: skip
    sized = SizeQuery(**asked, gpu="h100").answer(sources).lines()
    listed = RecommendQuery(**asked, gpus=["h100"], weight_formats=["bf16"]).answer(sources).lines()

    assert "price: 1.75 USD/h at the caller's own price" in sized
    assert "1.75 USD/h at the caller's own price" in listed[1]
    assert not any("None" in line for line in (*sized, *listed))


@pytest.mark.parametrize(
    ("short", "head"),
    [
        (5, "does not fit: llama-3.1-8b-instruct on h100-sxm-80gb, 5 bytes short per GPU"),
        (0, "too slow: llama-3.1-8b-instruct on h100-sxm-80gb does not keep the limits at any load"),
    ],
)
def test_what_is_not_feasible_is_told_with_what_would_be(sizing: Sizing, short: int, head: str) -> None:
    told = lines(sizing, feasible=False, shortfall_bytes=short, would_fit=("a larger GPU",), warnings=("careful",))

    assert told[0] == head
    assert told[-2:] == ["would fit: a larger GPU", "warning: careful"]
    assert not any(line.startswith(("engine args", "command")) for line in told)


def test_latency_is_told_where_it_is_known(sizing: Sizing) -> None:
    seconds = Distribution(mean=0.1, p50=0.1, p95=0.2, p99=0.3)
    latency = Latency(
        ttft_s=seconds, tpot_s=seconds, itl_s=seconds, end_to_end_s=seconds, basis="roofline", basis_note="",
        expected_error_fraction=0.25, pace_error_fraction=0.2, requests_simulated=2_000, percentile=95.0,
        ttft_at_percentile_s=0.2, tpot_at_percentile_s=0.2, ttft_standard_error_s=0.01, tpot_standard_error_s=0.001,
    )  # fmt: skip
    state = LoadState(
        concurrent_requests=7.6, requests_per_s=2.5, output_tokens_per_s=500, queue_growth_per_s=0,
        kv_cache_fraction=0.5, preemptions_per_request=0,
    )  # fmt: skip

    told = lines(sizing, latency=latency, at_load=state)

    assert "load: 8 requests in flight, 2.5 per s" in told
    assert "TTFT p50 0.1 s, p95 0.2 s; TPOT p50 0.1 s, p95 0.2 s" in told
    assert "from roofline, expected within 25 % (pace alone within 20 %)" in told
    assert len(told) == len(lines(sizing, latency=None)) + 3
    asked = replace(latency, percentile=90.0, ttft_at_percentile_s=0.15, tpot_at_percentile_s=0.12)
    of_limit = lines(sizing, latency=asked, at_load=state)
    assert "TTFT p50 0.1 s, p90 0.15 s, p95 0.2 s; TPOT p50 0.1 s, p90 0.12 s, p95 0.2 s" in of_limit


def test_pools_are_told_apart(sizing: Sizing) -> None:
    pools = Pools(
        prefill_replicas=3, prefill_gpus_per_replica=2, prefill_tensor_parallel_size=2,
        prefill_layout=Layout(tensor_parallel_size=2), prefill_engine_args=("--served-model-name", "a b"), decode_replicas=1,
        decode_gpus_per_replica=1, decode_tensor_parallel_size=1, kv_transfer_bytes_per_gpu=1,
        interconnect_bytes_per_s=1.0, kv_transfer_s=1.0,
    )  # fmt: skip

    told = SizeAnswer(replace(sizing, pools=pools), 1).lines()

    assert told[1].startswith("layout: 3 prefill replicas of TP2 PP1, 1 replica of TP1 PP1 for decode; binds: ")
    assert told[-1] == "prefill: --served-model-name 'a b'"


@pytest.mark.parametrize(
    ("saves", "usd_per_hour", "told"),
    [
        (0, 0.3, "takes 2 GPUs, saves 0.30 USD/h"),
        (1, 0.0, "takes 2 GPUs, saves 1 GPU"),
        (3, 5.0, "takes 2 GPUs, saves 3 GPUs and 5.00 USD/h"),
        (1, -0.5, "takes 2 GPUs, saves 1 GPU for 0.50 USD/h more"),
        (0, None, "takes 2 GPUs, fits"),
    ],
)
def test_the_best_lever_is_told_by_what_it_saves(
    sizing: Sizing, saves: int, usd_per_hour: float | None, told: str
) -> None:
    lever = Lever(
        change={"weight_format": "int4"},
        gpus=2,
        saves_gpus=saves,
        usd_per_hour=1.0,
        saves_usd_per_hour=usd_per_hour,
        basis=None,
    )

    assert f"best lever: weight_format=int4 {told}" in lines(sizing, levers=(lever,))
