"""Memory plans of what is deployed."""

from dataclasses import replace

from service.engine.fleet.deployments import resolve_size
from service.engine.fleet.planned import legal_layouts, planned
from service.engine.inputs import Layout, StatedLayout
from tests.engine.conftest import Asked


def test_stated_parts_of_a_layout_are_kept(asked: Asked) -> None:
    resolved = resolve_size(asked())

    layouts = legal_layouts(resolved, StatedLayout(tensor_parallel_size=4)).layouts

    assert layouts
    assert {layout.tensor_parallel_size for layout in layouts} == {4}


def test_the_longest_context_is_shortened_only_where_nobody_stated_it(asked: Asked) -> None:
    own = resolve_size(asked(gpu="l4"))  # 16 GB of weights on 22 GiB: 131,072 tokens do not fit
    resolved = replace(own, settings=replace(own.settings, max_model_len=131_072))
    served = planned(resolved, Layout(), 1_000, 200).settings.max_model_len
    stated = replace(resolved, shorten_to_fit=False)

    assert own.settings.max_model_len == 1_792  # 1.1 x 1,200 tokens, a quarter more, in steps of 256
    assert 1_200 <= served < 131_072
    assert planned(stated, Layout(), 1_000, 200).settings.max_model_len == 131_072
