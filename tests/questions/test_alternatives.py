"""What may stand in the place of a GPU or a model."""

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.memory.parameters import num_parameters
from service.questions.alternatives import cache_bytes_per_token, leaner_models, other_gpus, smaller_models


@pytest.mark.parametrize(
    ("model", "smaller"),
    [("llama-3.3-70b", "llama-3.1-8b-instruct"), ("qwen3-32b", "qwen3-14b"), ("gpt-oss-120b", "gpt-oss-20b"),
     ("gemma-3-27b-it", "gemma-3-12b-it"), ("deepseek-v3", "deepseek-v2")],
)  # fmt: skip
def test_smaller_models_are_of_the_same_line(catalog: Snapshot, model: str, smaller: str) -> None:
    named = [each.id for each in smaller_models(catalog, catalog.model(model))]

    assert smaller in named
    assert {name.split("-")[0] for name in named} == {model.split("-", maxsplit=1)[0]}


@pytest.mark.parametrize("model", ["llama-3.3-70b", "qwen3-235b-a22b", "mixtral-8x7b-v0.1"])
def test_leaner_models_are_of_the_same_size_with_half_the_cache_at_most(catalog: Snapshot, model: str) -> None:
    asked = catalog.model(model)
    leaner = list(leaner_models(catalog, asked))

    assert leaner
    for other in leaner:
        assert 0.5 <= num_parameters(other.architecture) / num_parameters(asked.architecture) <= 1.5
        assert 2 * cache_bytes_per_token(other) <= cache_bytes_per_token(asked)


def test_latent_attention_of_the_same_size_is_leaner(catalog: Snapshot) -> None:
    """DeepSeek-V2 keeps 512 + 64 elements of a token in each of 60 layers (arXiv 2405.04434, 2.1)."""
    names = [each.id for each in leaner_models(catalog, catalog.model("qwen3-235b-a22b"))]

    assert "deepseek-v2" in names
    assert cache_bytes_per_token(catalog.model("deepseek-v2")) == (512 + 64) * 60 * 2


def test_other_gpus_are_rented_out_and_compute_in_the_format(catalog: Snapshot) -> None:
    others = {gpu.id for gpu in other_gpus(catalog, catalog.gpu("h100"), "fp8", catalog.offers)}

    assert "l40s" in others
    assert not others & {"h100-sxm-80gb", "a100-sxm-80gb", "rtx-4090", "v100-sxm2-16gb"}
    assert others <= {offer.gpu for offer in catalog.offers}
