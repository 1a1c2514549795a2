"""Options as they are listed."""

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.answers.recommend import recommend
from tests.engine.conftest import Asked, arrivals, recommendation_of, users


def test_an_options_figures_follow_from_one_another(asked: Asked, catalog: Snapshot) -> None:
    for load in (users(40), arrivals(3.0)):
        for option in recommend(recommendation_of(asked("qwen3-32b", load=load), catalog, "h100", "l40s")).options:
            assert option.gpus == option.replicas * option.gpus_per_replica
            assert 0 < option.utilization_fraction <= 1
            assert option.usd_per_hour is not None
            assert option.requests_per_s is not None
            tokens_per_hour = option.requests_per_s * load.output_tokens * 3_600
            assert option.usd_per_million_output_tokens == pytest.approx(option.usd_per_hour / tokens_per_hour * 1e6)


def test_nothing_on_the_front_is_beaten_in_price_and_gpus_at_the_same_width(asked: Asked, catalog: Snapshot) -> None:
    options = recommend(
        recommendation_of(asked("qwen3-32b"), catalog, "h100", "l40s", "l4", "a100-sxm-80gb", weight_formats=("bf16",))
    ).options
    front = [option for option in options if option.on_pareto_front]

    assert front
    for option in front:
        for other in options:
            beats = (other.usd_per_hour or 0) <= (option.usd_per_hour or 0) and other.gpus <= option.gpus
            assert not beats or (other.usd_per_hour, other.gpus) == (option.usd_per_hour, option.gpus)
