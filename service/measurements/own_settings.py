"""What a server ran with where neither its text nor the question beside it says: its engine's own settings.

/capacity chooses better ones where it may; a server that was measured had no such choice.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from service.calibration.images import FLASHINFER_BYTES
from service.catalog.measurement_rows import Setting
from service.engine.arithmetic import GIB
from service.engine.fleet.given_gpus import resolve_capacity
from service.questions.capacity import CapacityBody
from service.questions.sources import Sources

OPEN: Final = ("max_num_seqs", "max_num_batched_tokens")
LENGTH: Final = "max_model_len"
WHY: Final = "the engine's own: neither the text nor the question says it, so what the server ran with is not chosen"


def own_settings(
    question: CapacityBody, answer: Mapping[str, Any], sources: Sources, *, has_failed: bool
) -> dict[str, Setting]:
    """Return the engine's own settings where an answer chose others; nothing where it chose none.

    A context is shortened to what the pool holds, as whoever started a server did; a start that failed was not.
    """
    chosen = {each["name"]: each["value"] for each in answer["assumptions"] if each["origin"] == "chosen"}
    names = (*OPEN, LENGTH) if has_failed else OPEN
    if not chosen.keys() & set(names):
        return {}
    settings = resolve_capacity(question.looked_up(sources)).settings
    own: dict[str, Setting] = {name: getattr(settings, name) for name in names if name not in question.stated()}
    return own if any(chosen.get(name, value) != value for name, value in own.items()) else {}


def sampled_otherwise(question: CapacityBody, line: int, sources: Sources) -> Iterator[str]:
    """Yield what a line that names FlashInfer's sampler changes, where the version is counted with a sort.

    Source:
        vLLM 0.8 to 0.11.0 `v1/sample/ops/topk_topp_sampler.py`, `docker/Dockerfile`; flashinfer-ai/flashinfer issue
        1180 logs both.
    """
    asked = question.looked_up(sources)
    less = asked.rules.sampler_bytes_per_logit - FLASHINFER_BYTES
    if line and less > 0:
        settings = resolve_capacity(asked).settings
        logits = min(settings.max_num_seqs, settings.max_num_batched_tokens) * asked.model.architecture.vocab_size
        yield (
            f"line {line} says that FlashInfer samples, as it does where it is installed; what is predicted sorts, as "
            f"the package alone does, which takes up to {less * logits / GIB:.2f} GiB more beside the cache"
        )


def told(assumptions: Sequence[Mapping[str, Any]], own: Mapping[str, Setting]) -> tuple[Mapping[str, Any], ...]:
    """Return assumptions with what is the engine's own said to be that, and not the caller's."""
    return tuple({**each, "origin": "default", "source": WHY} if each["name"] in own else each for each in assumptions)
