"""An image that a source names samples with FlashInfer where the package alone sorts."""

import pytest

from service.calibration.images import as_installed
from service.catalog.engine_rules import rules_for


@pytest.mark.parametrize(
    ("version", "words", "bytes_per_logit"),
    [
        ("0.11.0", "vllm-openai:latest (October 2025)", 14),
        # docs.nvidia.com/deeplearning/frameworks/vllm-release-notes/rel-25-10.html lists FlashInfer.
        ("0.11.0", "0.11.0+582e4e37.nv25.11", 14),
        ("0.11.0", "0.11.0", 38),
        ("0.11.1", "vllm-openai:v0.11.1", 38),  # pull request 26859: on request alone
        (None, "vllm-openai:latest", 14),  # as the newest version does by itself
    ],
)
def test_an_image_samples_with_what_it_installs(version: str | None, words: str, bytes_per_logit: int) -> None:
    rules = as_installed(rules_for("vllm", version), version, words)

    assert rules.sampler_bytes_per_logit == bytes_per_logit
