"""Why there are no measured kernels, in this service's words: what the library said stays in its log."""

import logging
import re
from typing import Final

LIBRARYS_OWN: Final = re.compile(r"[A-Z]\w*: ")  # the name of an exception before its message
GENERAL: Final = "no kernels were measured that cover this model, format and layout on this GPU"
# What of the library's message says which kernels are missing, and how that is told.
MISSING: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"architecture .* is not supported|[Uu]nsupported (?:model|architecture)"),
     "no kernels were measured for this model's architecture"),
    (re.compile(r"GEMM"), "no matrix kernels were measured for this weight format on this GPU"),
    (re.compile(r"[Mm][Oo][Ee]"), "no kernels of experts were measured for this format and layout on this GPU"),
    (re.compile(r"MLA|[Aa]ttention|mamba|[Gg]dn|GDN"), "no attention kernels of this kind were measured on this GPU"),
    (re.compile(r"all.?reduce|nccl|NCCL|comm"), "no communication between this many GPUs was measured on this GPU"),
)  # fmt: skip


def told(reason: str) -> str:
    """Return a refusal as callers are told it.

    >>> told("ValueError: The model's architecture FooForCausalLM is not supported. Supported architectures: ...")
    "no kernels were measured for this model's architecture"
    >>> told("no kernels match the weight format")
    'no kernels match the weight format'
    """
    if not LIBRARYS_OWN.match(reason):
        return reason
    logging.getLogger(__name__).debug("no measured kernels: %s", reason)
    return next((words for pattern, words in MISSING if pattern.search(reason)), GENERAL)
