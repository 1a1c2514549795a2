"""From how a model was called to what the engine computes with: the named checkpoint is the one that is loaded."""

from dataclasses import replace
from typing import Final

from service.catalog.names.readings import ModelReading, is_of_edition
from service.catalog.names.recipes import stored_by
from service.catalog.snapshot import Snapshot
from service.engine.derived import derived
from service.engine.facts import Checkpoint, ModelFacts
from service.engine.fleet.checkpoints import own_checkpoint
from service.engine.formats.quantization import Quantization, parse_quantization, standard_quantization
from service.engine.inputs import HALF_FORMATS, WeightFormat

MOST_REPOSITORIES: Final = 8  # of one model


def facts_as_named(snapshot: Snapshot, reading: ModelReading) -> ModelFacts:
    """Return a model with the checkpoint that its name says as its only one; the model itself where it says none.

    A repository of the same shape is loaded in the place of the model's own.

    Raises:
        EngineError: the model, or the checkpoint that was named, has no rule.
    """
    facts = snapshot.model(reading.model_id)
    if reading.repository is not None:
        facts = _of_repository(facts, reading.repository, reading.has_own_weights)
    if reading.weight_format is None:
        return facts
    return replace(facts, checkpoints=(_named(snapshot, facts, reading, reading.weight_format),))


@derived(MOST_REPOSITORIES)
def _of_repository(facts: ModelFacts, repository: str, has_own_weights: bool) -> ModelFacts:  # noqa: FBT001 - a key
    """Return a model whose own checkpoint is in another repository; one of its own weights has no other published.

    Other formats of another edition are sized as the model's; only those whose names say the edition are its own.
    """
    own = own_checkpoint(facts)
    others = () if has_own_weights else (each for each in facts.checkpoints if each is not own)
    served = (each if is_of_edition(each.hf_id or "", repository) else _of_shape(each, None) for each in others)
    own_first = sorted(served, key=lambda each: each.hf_id is None)
    return replace(facts, checkpoints=(replace(own, hf_id=repository), *own_first))


def _named(snapshot: Snapshot, facts: ModelFacts, reading: ModelReading, weight_format: WeightFormat) -> Checkpoint:
    """Return the checkpoint of this hub id, else a published one of the format, else the format's usual recipe."""
    wanted = (reading.hf_id or "").lower()
    for stated in snapshot.model_entries[reading.model_id].checkpoints:
        if stated.hf_id.lower() == wanted:
            parse_quantization(stated.quantization_config)  # a recipe without a rule is refused by its own name
    same = [each for each in facts.checkpoints if each.weight_format == weight_format]
    exact = [each for each in same if (each.hf_id or "").lower() == wanted]
    told = reading.recipe and stored_by(reading.recipe, weight_format, is_hybrid=_is_hybrid(facts))
    like = exact or [each for each in same if told is None or _is_like(each.quantization, told)]
    if like:
        return _in_repository(replace(like[0], is_default=True), None if exact else reading.hf_id)
    recipe = "the format's usual recipe" if told is None else f"what such names mean ({_described(told)})"
    return Checkpoint(
        weight_format=weight_format,
        quantization=told or standard_quantization(weight_format, is_mixture=facts.architecture.has_experts),
        hf_id=reading.hf_id,
        is_default=True,
        kv_cache_dtype=None,
        source=f"the name says the format; the repository is not in the catalog, so {recipe} is sized",
        is_assumed=weight_format not in HALF_FORMATS,
    )


def _in_repository(like: Checkpoint, hf_id: str | None) -> Checkpoint:
    """Return a checkpoint that is stored like a published one in a repository that was named; itself where none was.

    Of another publisher's it is not known that the cache has fewer bits, nor that its matrices were padded.
    """
    if hf_id is None:
        return like
    is_same_publisher = hf_id.partition("/")[0].lower() == (like.hf_id or "").partition("/")[0].lower()
    return replace(
        like if is_same_publisher else _of_shape(like, hf_id),
        hf_id=hf_id,
        kv_cache_dtype=like.kv_cache_dtype if is_same_publisher else None,
        source=f"the repository is not in the catalog: sized like {like.hf_id or 'another'} of the same format",
        is_assumed=True,
    )


def _of_shape(like: Checkpoint, hf_id: str | None) -> Checkpoint:
    """Return a checkpoint of another repository that is stored like one, in matrices of the model's own sizes."""
    return replace(like, hf_id=hf_id, architecture=None, config_json="")


def _is_like(published: Quantization, told: Quantization) -> bool:
    """Return whether a published checkpoint is stored as a name says: by the same method, of as many operands."""
    return (published.method, published.scheme) == (told.method, told.scheme)


def _described(told: Quantization) -> str:
    groups = f" in groups of {told.block}" if told.block else ""
    return f"{told.method}, {told.weight_format}{groups}"


def _is_hybrid(facts: ModelFacts) -> bool:
    """Return whether a model has layers with states beside those with a cache."""
    return len({mixer.is_recurrent for mixer in facts.architecture.mixers}) > 1
