"""Parts that a layer does without."""

from service.engine.inputs import Layout
from service.engine.layers import NoAttention, NoMlp, Work
from tests.engine.layers.ranks import rank


def test_nothing_takes_nothing() -> None:
    for part in (NoAttention(), NoMlp()):
        assert part.is_empty
        assert part.matrices(4_096, Layout(), "model.layers.0.") == []
        assert part.divisors == ()
        assert part.adapted_matrices is None
    assert NoAttention().caches(rank()) == ()
    assert NoAttention().work(1, 2) == Work()
    assert not NoAttention().is_attention
    assert not NoAttention().is_recurrent


def test_blocks_and_pages_are_left_to_the_other_layers() -> None:
    assert (NoAttention().kernel_needs, NoAttention().page_size) == ((), 1)


def test_no_network_is_no_expert_and_no_width() -> None:
    assert NoMlp().routing is None
    assert (NoMlp().active_columns, NoMlp().live_elements, NoMlp().workspace_elements(4_096, Layout())) == (0, 0, 0)
