"""Lines of arguments that a terminal folded at its width, or an author at a comma, before they were pasted.

Source:
    Logs of vLLM 0.10.1.1 in github.com/dennislee22/vLLM-benchmarking, folded within words.
"""

import re
from typing import Final

from service.measurements.patterns import MOST_CHARACTERS

# What a line of its own begins with: whose process it is, how grave, or when.
OWN: Final = re.compile(
    r"\s*(?:[\w.-]{1,60} *\| *)?(?:\((?:APIServer|EngineCore|Worker|VllmWorker)|(?:INFO|WARNING|ERROR|DEBUG)\b|"
    r"\[?\d{4}-\d\d-\d\d[ T])"
)
OPENS: Final = re.compile(r"(?:non-default args: |\b(?:Namespace|ServerArgs|EngineArgs))([{(].*)")
CONFIGURATION: Final = re.compile(r"engine \(v[^)]{1,80}\) with config:(?!.*local_cache_dir)")
SETTING: Final = re.compile(r"\w=[^=\s]|'\w+': |\"\w+\": ?")
NARROWEST: Final = 79  # columns of a terminal that folds


def goes_on(line: str, following: str) -> bool:
    """Return whether a line of arguments goes on in the one that follows.

    >>> goes_on("INFO [utils.py:326] non-default args: {'model': 'Qwe", "n2-7B-Instruct', 'max_model_len': 16384}")
    True
    >>> goes_on("INFO [utils.py:326] non-default args: {'model': 'Qwen2-7B-Instruct'}", "'max_model_len': 16384")
    False
    """
    if OWN.match(following) or SETTING.search(following[:MOST_CHARACTERS]) is None:
        return False
    opened = OPENS.search(line[:MOST_CHARACTERS])
    if opened is not None:
        return _is_open(opened[1])
    is_folded = len(line) >= NARROWEST or line.rstrip().endswith((",", ":"))
    return is_folded and CONFIGURATION.search(line[:MOST_CHARACTERS]) is not None


def _is_open(text: str) -> bool:
    """Return whether a bracket that a text begins with is not closed in it."""
    closing = {"{": "}", "(": ")"}[text[0]]
    return text.count(text[0]) > text.count(closing)
