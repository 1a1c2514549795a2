"""Sweeps over every model of the catalog: GPUs that grow in number carry no less, and every command starts."""

import random
from collections.abc import Iterator, Sequence
from typing import Any, Final

from benchmarks.decision.referee import TIMED, TIMED_GPUS
from service.catalog.engine_flags import flags_of
from service.catalog.snapshot import Snapshot
from service.engine.answers.results import Sizing
from service.engine.arithmetic import GIB
from service.engine.errors import EngineError
from service.engine.fleet.given_gpus import carried, largest, resolve_capacity
from service.engine.fleet.plainest import preferred
from service.questions.capacity import CapacityQuery
from service.questions.refusals import RefusalError
from service.questions.size import SizeQuery
from service.questions.sources import Sources
from tests.questions.launches import faults, flags_in

COMMAND_GPUS: Final = ("h100", "h200", "b200", "a100", "l40s", "t4")
GROWING_ON: Final = ("h100", "b200", "l40s", "a100-sxm-80gb")
MOST_GPUS: Final = 16
LENGTHS: Final[tuple[dict[str, int], ...]] = ({}, {"input_tokens": 2_000, "output_tokens": 300})
LIMITED: Final = 10  # questions with limits
LOADED: Final = 60  # questions with a load
LOADS: Final = ((8, 800, 200), (32, 6_000, 1_000))  # users, prompt, answer

Carried = tuple[int, float]  # context served where no lengths are stated; requests at once, or a second


def models_of(catalog: Snapshot) -> list[str]:
    """Return the models that are answered for."""
    return sorted(name for name in catalog.model_entries if not catalog.refusal(name))


def questions(catalog: Snapshot) -> Iterator[dict[str, Any]]:
    """Yield a question to `/capacity` of every model, with lengths and without."""
    for index, model in enumerate(models_of(catalog)):
        for lengths in LENGTHS:
            yield {"model": model, "gpu": GROWING_ON[index % len(GROWING_ON)], **lengths}


def limited(seed: int) -> Iterator[dict[str, Any]]:
    """Yield questions with limits on latency."""
    draw = random.Random(seed)
    for _ in range(LIMITED):
        yield {
            "model": draw.choice(TIMED),
            "gpu": draw.choice(TIMED_GPUS),
            "input_tokens": round(2 ** draw.uniform(7, 12)),
            "output_tokens": round(2 ** draw.uniform(4, 8)),
            "ttft_s": draw.choice([1, 2, 5]),
            "tpot_s": draw.choice([0.03, 0.05, 0.1]),
        }


def loaded(seed: int) -> Iterator[dict[str, Any]]:
    """Yield questions with users or arrivals that are asked for, and no limits."""
    draw = random.Random(seed)
    for index in range(LOADED):
        users = {"concurrent_requests": round(2 ** draw.uniform(0, 9))}
        rate = {"request_rate_per_s": round(2 ** draw.uniform(-4, 3), 3)}
        yield {
            "model": draw.choice(TIMED),
            "gpu": draw.choice(TIMED_GPUS),
            "input_tokens": round(2 ** draw.uniform(7, 13)),
            "output_tokens": round(2 ** draw.uniform(4, 10)),
            **(rate if index % 3 == 0 else users),
        }


def growing(asked: dict[str, Any], sources: Sources) -> list[Carried]:
    """Return what 1 to 16 GPUs carry of a question to `/capacity`."""
    told: list[Carried] = []
    for gpus in range(1, MOST_GPUS + 1):
        try:
            question = CapacityQuery(**asked, gpu_count=gpus).looked_up(sources)
            resolved = resolve_capacity(question)
            most = preferred(question, resolved, largest(question, resolved))
        except (EngineError, RefusalError):
            told.append((0, 0.0))
            continue
        load, has_lengths = carried(question, most), question.input_tokens is not None
        told.append((0 if has_lengths or not load else most.plan.settings.max_model_len, load))
    return told


def falls(told: Sequence[Carried]) -> int | None:
    """Return the first number of GPUs that carries less than one fewer; None where none does."""
    return next((count + 1 for count in range(1, len(told)) if told[count] < told[count - 1]), None)


def faults_of(answer: Sizing, catalog: Snapshot, model: str, gpu: str) -> Iterator[str]:
    """Yield what the engine would refuse of an answer's command, and margins that are missing."""
    if answer.command is None:
        if answer.feasible and not any(warning.startswith("no command: ") for warning in answer.warnings):
            yield "no command, and no reason"
        return
    facts, cache = catalog.gpu(gpu), answer.kv_cache
    yield from faults(
        answer.command,
        catalog.model_entries[model].config,
        answer.memory_per_gpu.total_bytes / GIB,
        float(facts.compute_capability or 0),
        set(flags_of("vllm", None)),
    )
    flags = flags_in(next(line for line in answer.command.splitlines() if not line.startswith("#")))
    if cache.state_bytes_per_request and int(flags["--max-num-seqs"]) > cache.num_gpu_blocks:
        yield "more sequences than blocks of states"
    if int(flags["--max-model-len"]) >= cache.estimated_max_model_len and cache.max_concurrency < 1.05:
        yield "no margin for the longest request"
    yield from (warning for warning in answer.warnings if "no margin" in warning)


def commands(sources: Sources, models: Sequence[str], gpus: Sequence[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield each model, GPU and the faults of its command, for every load; refused questions are left out."""
    for users, prompt, answer_tokens in LOADS:
        for model in models:
            for gpu in gpus:
                asked = SizeQuery(
                    model=model, gpu=gpu, concurrent_requests=users, input_tokens=prompt, output_tokens=answer_tokens,
                    latency="none",
                )  # fmt: skip
                try:
                    answer = asked.answer(sources).result
                except (EngineError, RefusalError):
                    continue
                if answer.feasible:
                    yield model, gpu, list(faults_of(answer, sources.catalog, model, gpu))
