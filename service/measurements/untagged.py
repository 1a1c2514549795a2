"""A version that says nothing: what a build names itself whose repository has no tags.

Source:
    setuptools-scm `version.py` (`guess_next_dev_version`: without a tag it counts commits since 0.0, so the next
    version is 0.1), which vLLM's `setup.py` and SGLang's `pyproject.toml` ask for theirs.
"""

import re
from typing import Final

from service.measurements.observed import Doubt, Observed

VERSION: Final = "engine_version"
UNTAGGED: Final = re.compile(r"0\.1\.dev\d{1,9}(?:\+\S{1,80})?")


def forget_untagged(observed: Observed) -> None:
    """Forget a version of a build without tags, and say that the newest rules stand in for its own."""
    version = observed.settings.get(VERSION)
    if not isinstance(version, str) or UNTAGGED.fullmatch(version) is None:
        return
    line = observed.setting_lines.pop(VERSION, 1)
    del observed.settings[VERSION]
    sentence = (
        f"line {line} says version {version}, as a build names itself whose repository has no tags: the newest rules "
        f"were compared; state {VERSION}, the release that it follows"
    )
    observed.doubts.append(Doubt(sentence=sentence, fields=(VERSION,)))
