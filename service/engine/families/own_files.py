"""Repositories whose tokenizer is in the publisher's own format alone: Mistral's `tekken.json`, without tokenizer.json.

Since 0.12 vLLM looks for Mistral's files first, config and weights among them; before, its readers are those of
transformers unless flags say otherwise, and find no tokenizer there.

Sources:
    The repositories' cards ("vllm serve ... --tokenizer_mode mistral --config_format mistral --load_format mistral").
    vLLM 0.11.0 `transformers_utils/tokenizer.py` (`get_tokenizer`); 0.12.0 `tokenizers/registry.py`,
    `transformers_utils/config.py`, `model_executor/model_loader/default_loader.py` ("First check for Mistral").
"""

from typing import Final

IN_OWN_FORMAT: Final = frozenset({
    "mistralai/devstral-small-2505", "mistralai/devstral-small-2507",
    "mistralai/magistral-small-2506", "mistralai/magistral-small-2507", "mistralai/magistral-small-2509",
    "mistralai/mistral-small-3.2-24b-instruct-2506",
    "mistralai/pixtral-12b-2409",
})  # fmt: skip


def is_in_own_format(repository: str) -> bool:
    """Return whether only the publisher's own library reads a repository's tokenizer.

    >>> is_in_own_format("mistralai/Devstral-Small-2507"), is_in_own_format("unsloth/Devstral-Small-2507")
    (True, False)
    """
    return repository.lower() in IN_OWN_FORMAT
