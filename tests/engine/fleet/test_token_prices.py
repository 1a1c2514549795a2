"""What tokens cost, by hand."""

import pytest

from service.engine.fleet.token_prices import token_prices, usd_per_million_tokens
from service.engine.inputs import Load

LOAD = Load(concurrent_requests=1, request_rate_per_s=None, input_tokens=900, output_tokens=100)


def test_a_million_tokens_at_a_thousand_a_second_take_a_thousand_seconds() -> None:
    assert usd_per_million_tokens(3.6, 1_000) == pytest.approx(1.0)


def test_the_whole_price_stands_over_prompts_over_completions_and_over_both() -> None:
    prices = token_prices(3.6, LOAD, 1.0)  # 900 and 100 tokens a second

    assert prices is not None
    assert prices.usd_per_million_tokens == pytest.approx(1.0)
    assert prices.usd_per_million_input_tokens == 1.11111  # six digits: rates are simulated
    assert prices.usd_per_million_output_tokens == pytest.approx(10.0)
    assert token_prices(3.6, LOAD, None) is None
