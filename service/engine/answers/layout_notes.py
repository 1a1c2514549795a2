"""How a model lies on its GPUs, as an answer rests on it: what the caller stated, and what was chosen and why."""

from collections.abc import Iterator
from typing import Final

from service.engine.answers.noted import note
from service.engine.fleet.deployments import Deployment
from service.engine.fleet.lengths import has_lengths
from service.engine.fleet.questions import CapacityQuestion, RecommendQuestion, SizeQuestion
from service.engine.fleet.results import Assumption
from service.engine.inputs import StatedLayout
from service.engine.time.demand import Arrivals, kind_of

OF_ALL: Final = "of every legal layout and open setting"
SIZED: Final = f"the fewest GPUs that carry the load, {OF_ALL}; then the least money, then the lowest latency"
POD: Final = (
    "the smallest pod that fills a server without a rest and carries at least half as much per GPU as the densest, "
    "whatever the load; /size chooses anew for each load, and may take fewer GPUs"
)
OPTION: Final = f"each option has its own, the best by the objective {OF_ALL}"
SOONEST: Final = (
    "ends the load asked for soonest, of layouts that carry no less than one GPU less would; a warning names the one "
    "that carries most"
)
PLAINEST: Final = (
    "the plainest that starts with the longest context, holds at most a twentieth fewer such requests, and answers "
    "about as often; a warning names the layout that holds most"
)
MOST: Final = f"{{}}, {OF_ALL}; of equals the least money, then the plainest"
HOSTED: Final = (
    "vLLM's own: {:,} parameters of tables of n-grams lie in pinned memory of the host, up to {:.0f} GB a replica"
)
COUNT: Final = "one replica of the stated layout; 1 GPU where none is stated"


def sized_layout(question: SizeQuestion, deployment: Deployment) -> Iterator[Assumption]:
    """Yield the layout of the fewest GPUs."""
    yield from _layout(question.layout, deployment, SIZED)


def layout_of_pod(question: SizeQuestion, pod: Deployment) -> Iterator[Assumption]:
    """Yield the layout of a pod, which stays as it is whatever the load."""
    yield from _layout(question.layout, pod, POD)


def given_gpus(question: CapacityQuestion, deployment: Deployment, *, holds_most: bool) -> Iterator[Assumption]:
    """Yield the GPUs that are given, and the layout on them.

    Args:
        question: what was asked.
        deployment: what was chosen.
        holds_most: no layout carries more. [yes or no]
    """
    is_stated = question.is_count_stated
    yield note("gpu_count", question.gpu_count, *(("request", None) if is_stated else ("default", COUNT)))
    if not holds_most:
        why = SOONEST if has_lengths(question) else PLAINEST
    elif not has_lengths(question):
        why = MOST.format("the longest context, and of that the most requests at once")
    else:
        why = MOST.format("the highest rate" if kind_of(question.load) is Arrivals else "the most requests at once")
    yield from _layout(question.layout, deployment, why)


def layouts_of_options(question: RecommendQuestion) -> Iterator[Assumption]:
    """Yield what is stated of every option's layout, and that the rest is each one's own."""
    stated = {name: value for name, value in _fields(question.layout).items() if value is not None}
    yield from (note(name, value, "request", None) for name, value in stated.items())
    if "tensor_parallel_size" not in stated:
        yield note("layout", "of each option", "chosen", OPTION)


def _layout(stated: StatedLayout, deployment: Deployment, why: str) -> Iterator[Assumption]:
    """Yield each part of a layout that is stated, or of which there was a choice."""
    layout, has_experts = deployment.layout, deployment.resolved.model.architecture.has_experts
    open_to_choice = {
        "tensor_parallel_size": True,
        "pipeline_parallel_size": True,
        "data_parallel_size": has_experts,
        "expert_parallel": has_experts and layout.gpus_per_replica > 1,
        "decode_context_parallel_size": layout.decode_context_parallel_size > 1,
    }
    for name, value in _fields(stated).items():
        if value is not None:
            yield note(name, value, "request", None)
        elif open_to_choice[name]:
            yield note(name, getattr(layout, name), "chosen", why)
    architecture = deployment.resolved.model.architecture
    if hosted := architecture.hosted_parameters:
        in_host = HOSTED.format(hosted, architecture.hosted_bytes / 1e9)
        yield note("engram_config.cpu_offload", True, "default", in_host)


def _fields(stated: StatedLayout) -> dict[str, int | bool | None]:
    return {
        "tensor_parallel_size": stated.tensor_parallel_size,
        "pipeline_parallel_size": stated.pipeline_parallel_size,
        "data_parallel_size": stated.data_parallel_size,
        "expert_parallel": stated.expert_parallel,
        "decode_context_parallel_size": stated.decode_context_parallel_size,
    }
