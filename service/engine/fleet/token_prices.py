"""What tokens cost at a price an hour and a rate of requests."""

from dataclasses import replace
from typing import Final

from service.engine.arithmetic import rounded_usd
from service.engine.fleet.results import Cost, TokenPrices
from service.engine.inputs import Load

SECONDS_PER_HOUR: Final = 3600


def with_token_prices(cost: Cost, load: Load, at_load: float | None, at_saturation: float | None) -> Cost:
    """Return a cost with what tokens cost at two rates of requests; None where nobody knows the rate. [1/s]."""
    if not at_load and not at_saturation:
        return cost  # which has none of its own
    return replace(
        cost,
        at_load=token_prices(cost.usd_per_hour, load, at_load),
        at_saturation=token_prices(cost.usd_per_hour, load, at_saturation),
    )


def token_prices(total_usd_per_hour: float, load: Load, requests_per_s: float | None) -> TokenPrices | None:
    """Return what a million tokens cost at a steady rate of requests; None without any.

    The whole price stands over prompt tokens, over completion tokens, and over both together: three
    ways to read one bill, not three parts of it.
    """
    if not requests_per_s:
        return None
    prompts, completions = requests_per_s * load.input_tokens, requests_per_s * load.output_tokens
    return TokenPrices(
        requests_per_s=requests_per_s,
        usd_per_million_input_tokens=_price(total_usd_per_hour, prompts),
        usd_per_million_output_tokens=_price(total_usd_per_hour, completions),
        usd_per_million_tokens=_price(total_usd_per_hour, prompts + completions),
    )


def _price(total_usd_per_hour: float, tokens_per_s: float) -> float | None:
    return rounded_usd(usd_per_million_tokens(total_usd_per_hour, tokens_per_s)) if tokens_per_s else None


def usd_per_million_tokens(total_usd_per_hour: float, tokens_per_s: float) -> float:
    """Return the price of a million tokens at a steady rate.

    usd_per_million = usd_per_hour x 1e6 / (tokens_per_s x 3600)

    DeepSeek on nodes of 8 H100 makes 22.3k tokens/s a node, "a cost of $0.20/1M output tokens" (LMSYS, 2025-05-05);
    that is what a GPU at 2 USD an hour comes to:

    >>> round(usd_per_million_tokens(8 * 2.0, 22_300), 2)
    0.2
    """
    return total_usd_per_hour * 1_000_000 / (tokens_per_s * SECONDS_PER_HOUR)
