"""`/replicas`: pods of one shape; how many of them?"""

from collections.abc import Sequence

from service.engine.answers.replicas import replicas
from service.engine.answers.results import Replicas
from service.engine.arithmetic import three_digits
from service.questions.answers import Answer, Row, flat
from service.questions.asked import Question
from service.questions.lines import checkpoint_lines, checkpoint_of, counted, layout_of, model_of, price_of, start_lines
from service.questions.one_gpu import OfOneGpu
from service.questions.parts.model import PastedModel
from service.questions.sources import Sources


class ReplicasAnswer(Answer[Replicas]):
    """How many pods of one shape, and the load that one of them carries."""

    is_scaled_by = True

    def rows(self) -> Sequence[Row]:
        """Return the one answer, flat."""
        return [dict(flat(self.document)) | {"checkpoint": checkpoint_of(self.result.assumptions)}]

    def lines(self) -> Sequence[str]:
        """Return the pods, and what one of them carries."""
        result, pod = self.result, self.result.per_pod
        load = f"{pod.max_concurrent_requests} requests at once"
        if pod.max_requests_per_s is not None:
            load = f"{three_digits(pod.max_requests_per_s)} requests per s"
        return [
            f"{counted(result.replicas, 'pod')} of {result.gpus_per_replica} x {result.gpu} for {model_of(result)}",
            f"layout: {layout_of(result.layout)}, {result.weight_format}, cache {result.kv_cache_dtype}",
            f"one pod carries {load}; binds: {result.binding_constraint}",
            *checkpoint_lines(result.assumptions),
            *([f"price: {price_of(result.cost)}"] if result.feasible else []),
            *([*start_lines(result.command, result.engine_args)] if result.feasible else []),
            *(f"would fit: {sentence}" for sentence in result.would_fit),
            *(f"warning: {sentence}" for sentence in result.warnings),
        ]


class ReplicasQuery(OfOneGpu):
    """Pods of one shape: how many of them carry the load?"""

    def answer(self, sources: Sources) -> ReplicasAnswer:
        """Return the pods that carry the load, and the load that one of them carries."""
        question = self.sized(sources, self.slowed(self.timed(sources.timers)))
        return ReplicasAnswer(replicas(question), sources.catalog.revision)


class ReplicasBody(PastedModel, ReplicasQuery):
    """`ReplicasQuery`, or the same with a pasted config."""


REPLICAS = Question(
    name="replicas",
    summary="How many pods of this shape?",
    description="Return how many pods of one layout carry the load, for autoscalers: the shape of a pod does not "
    "depend on the load, and more load never takes fewer pods. State the layout that your pods have; what is left "
    "open is chosen, the smallest shape that carries at least half as much per GPU as the densest, by memory alone and "
    "within limits. Settings that are left open are those that carry most, as `/size` and `/capacity` count them. "
    "per_pod is the threshold to scale on.",
    query=ReplicasQuery,
    body=ReplicasBody,
    answer=ReplicasAnswer,
    abridged={"feasible": True, "replicas": 4, "gpus": 8, "gpus_per_replica": 2, "per_pod": {"max_requests_per_s": 3}},
    examples={
        "by name": {
            "summary": "pods of two H100 for a live rate",
            "value": {
                "model": "llama-3.3-70b",
                "gpu": "h100",
                "tensor_parallel_size": 2,
                "request_rate_per_s": 10,
                "input_tokens": 2000,
                "output_tokens": 500,
                "weight_format": "fp8",
                "ttft_s": 2,
                "tpot_s": 0.05,
            },
        },
    },
)
