"""Memory plans of what is deployed."""

from dataclasses import replace

import pytest

from service.engine.fleet.deployments import resolve_size
from service.engine.fleet.planned import legal_layouts, planned
from service.engine.fleet.questions import StatedSettings
from service.engine.inputs import KvCacheDtype, Layout, StatedLayout
from tests.engine.conftest import Asked


def test_stated_parts_of_a_layout_are_kept(asked: Asked) -> None:
    resolved = resolve_size(asked())

    layouts = legal_layouts(resolved, StatedLayout(tensor_parallel_size=4)).layouts

    assert layouts
    assert {layout.tensor_parallel_size for layout in layouts} == {4}


@pytest.mark.parametrize(
    ("model", "gpu", "cache"),
    # vLLM 0.33 `v1/attention/backends/`: no kernel with `supports_dcp` attends both ways within an image; FlashInfer,
    # which alone reads an fp8 cache before Hopper, has no heads of 80, 96 or 160
    [
        ("paligemma-3b-pt-224", "h100", None), ("paligemma-3b-pt-224", "b200", None), ("molmo2-8b", "a100", None),
        ("exaone-3.5-2.4b-instruct", "l40s", "fp8"), ("h2o-danube3-500m-chat", "rtx-5090", "fp8"), ("sarashina2.2-3b-instruct-v0.1", "b200", "fp8"),
    ],
)  # fmt: skip
def test_every_layout_that_is_searched_has_kernels(asked: Asked, model: str, gpu: str, cache: KvCacheDtype) -> None:
    resolved = resolve_size(asked(model=model, gpu=gpu, settings=StatedSettings(kv_cache_dtype=cache)))

    layouts = legal_layouts(resolved, StatedLayout()).layouts

    assert len(layouts) > 4
    assert all(planned(resolved, layout, 1_000, 200).layout == layout for layout in layouts)


def test_the_longest_context_is_shortened_only_where_nobody_stated_it(asked: Asked) -> None:
    own = resolve_size(asked(gpu="l4"))  # 16 GB of weights on 22 GiB: 131,072 tokens do not fit
    resolved = replace(own, settings=replace(own.settings, max_model_len=131_072))
    served = planned(resolved, Layout(), 1_000, 200).settings.max_model_len
    stated = replace(resolved, shorten_to_fit=False)

    assert own.settings.max_model_len == 1_792  # 1.1 x 1,200 tokens, a quarter more, in steps of 256
    assert 1_200 <= served < 131_072
    assert planned(stated, Layout(), 1_000, 200).settings.max_model_len == 131_072
