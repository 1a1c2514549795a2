"""Towers for images and sound."""

from service.engine.layers import Encoder

TOWER = Encoder(
    split_parameters=1_600, whole_parameters=10, num_heads=16, split_elements_per_token=64, whole_elements_per_token=3
)


def test_parameters_are_split_or_whole() -> None:
    assert [TOWER.parameters(tp) for tp in (1, 2, 16)] == [1_610, 810, 110]


def test_an_uneven_tower_is_refused_or_whole() -> None:
    uneven = Encoder(split_parameters=1_600, whole_parameters=10, num_heads=6, is_whole_where_uneven=True)

    assert uneven.parameters(4) == 1_610
    assert uneven.divisors == ()
    assert [(it.name, it.size) for it in TOWER.divisors] == [("attention heads of the vision or audio tower", 16)]


def test_a_tower_beside_it_counts_too() -> None:
    both = Encoder(split_parameters=0, whole_parameters=5, intermediate_size=100, beside=TOWER)

    assert both.parameters(2) == 5 + 810
    assert [it.size for it in both.divisors] == [16, 100]


def test_what_is_alive_is_split_where_heads_are() -> None:
    assert [TOWER.live_elements(tp) for tp in (1, 4, 3)] == [67, 19, 67]
    whole = Encoder(split_parameters=0, whole_parameters=10, split_elements_per_token=64)
    assert whole.live_elements(4) == 64
