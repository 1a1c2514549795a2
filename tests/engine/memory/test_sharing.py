"""How many queries share a key and a value, by published configs."""

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.memory.sharing import cache_sharing


# huggingface.co/meta-llama/Llama-3.1-8B: 32 heads on 8.
def test_grouped_heads_save_all_but_their_own_share(catalog: Snapshot) -> None:
    sharing = cache_sharing(catalog.model("llama-3.1-8b").architecture)

    assert sharing is not None
    assert (sharing.query_heads, sharing.key_value_heads, sharing.saved_fraction) == (32, 8, 0.75)


def test_a_latent_saves_what_deepseek_says(catalog: Snapshot) -> None:
    """576 elements instead of 128 heads x (192 + 128): 98.6 % less."""
    sharing = cache_sharing(catalog.model("deepseek-v3").architecture)

    assert sharing is not None
    assert sharing.saved_fraction == pytest.approx(1 - 576 / (128 * 320))
