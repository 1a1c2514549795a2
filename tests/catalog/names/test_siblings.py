"""A name that several sizes bear is none of them; one size of it is told where an alias stands for it."""

import pytest

from service.catalog.errors import NotInCatalogError
from service.catalog.snapshot import Snapshot


@pytest.mark.parametrize(
    ("name", "sizes"),
    # each collection of these publishers holds these sizes (huggingface.co/collections)
    [
        ("llava-v1.6", {"llava-v1.6-34b", "llava-v1.6-vicuna-7b", "llava-v1.6-vicuna-13b", "llava-v1.6-mistral-7b"}),
        ("ling-2.6", {"ling-2.6-1t", "ling-2.6-flash"}),
        ("solar", {"solar-10.7b-instruct-v1.0", "solar-pro-preview-instruct"}),
        ("phi-3", {"phi-3-mini-4k-instruct", "phi-3-medium-4k-instruct"}),
        ("qwen3-8", {"qwen3.8-2.4t-a95b", "qwen3-8b"}),
    ],
)
def test_a_name_that_several_sizes_bear_is_refused_with_them(catalog: Snapshot, name: str, sizes: set[str]) -> None:
    with pytest.raises(NotInCatalogError, match="may be any of several models") as refusal:
        catalog.called_models.read(name)

    assert sizes <= set(refusal.value.suggestions)


@pytest.mark.parametrize("name", ["gpt-oss", "deepseek-v4", "starcoder2"])
def test_an_alias_that_several_sizes_bear_tells_which_one_is_taken(catalog: Snapshot, name: str) -> None:
    assert "of several sizes" in catalog.called_models.read(name).how


@pytest.mark.parametrize("name", ["llama-3.3", "kimi-k2", "llama-3.3-70b"])
def test_a_name_of_one_size_leaves_nothing_open(catalog: Snapshot, name: str) -> None:
    assert "of several sizes" not in catalog.called_models.read(name).how
