"""One answer in several formats: JSON, text, CSV, YAML, Prometheus, or one number."""

import csv
import io
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml
from starlette.responses import Response

from service.api.answers import Answer, CapacityAnswer, RecommendAnswer, SizeAnswer
from service.api.problems import FieldProblem, ProblemError
from service.api.questions import Question
from service.engine.answers.results import Option
from service.engine.arithmetic import GIB

JSON = "application/json"
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def respond(answer: SizeAnswer | CapacityAnswer | RecommendAnswer, question: Question) -> Response:
    """Return the answer in the format asked for.

    Raises:
        ProblemError: one number was asked for and the question has no feasible answer, because a
            machine that reads 0 scales to zero; or the answer has no such number.
    """
    if question.field is not None:
        _require_feasible(answer)
        return Response(_scalar(answer, question.field) + "\n", media_type="text/plain")
    match question.format:
        case "json":
            return Response(answer.model_dump_json() + "\n", media_type=JSON)
        case "yaml":
            text = yaml.safe_dump(answer.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
            return Response(text, media_type="application/yaml")
        case "csv":
            return Response(_csv(_rows(answer)), media_type="text/csv")
        case "text":
            return Response("\n".join(_lines(answer)) + "\n", media_type="text/plain")
        case "prometheus":
            _require_feasible(answer)
            return Response(_prometheus(answer), media_type=PROMETHEUS)


def _require_feasible(answer: SizeAnswer | CapacityAnswer | RecommendAnswer) -> None:
    if not answer.feasible:
        raise ProblemError(
            422,
            "infeasible",
            "the question has no feasible answer, so there is no number to read; ask with format=json for the reason",
        )


def _scalar(answer: Answer, path: str) -> str:
    """Return one scalar of the answer as text, by its dotted path."""
    node: Any = answer.model_dump(mode="json")
    for part in path.split("."):
        if isinstance(node, list) and part.isdigit() and int(part) < len(node):
            node = node[int(part)]
        elif isinstance(node, dict) and part in node:
            node = node[part]
        else:
            raise _no_such_field(path, node)
    if isinstance(node, dict | list) or node is None:
        raise _no_such_field(path, node)
    return str(node).lower() if isinstance(node, bool) else str(node)


def _no_such_field(path: str, node: Any) -> ProblemError:
    names = ", ".join(node) if isinstance(node, dict) else "the path of a value that is neither null nor a list"
    detail = f"the answer has no single value at {path[:100]!r}"
    return ProblemError(422, "no-such-field", detail, [FieldProblem(field="field", detail=detail, accepted=names)])


def _flat(node: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every scalar with its dotted path; lists are left to their own formats."""
    for name, value in node.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        elif not isinstance(value, list):
            yield f"{prefix}{name}", value


def _rows(answer: SizeAnswer | CapacityAnswer | RecommendAnswer) -> list[dict[str, Any]]:
    """Return what a spreadsheet wants: options, context rows, or the one sizing."""
    document = answer.model_dump(mode="json")
    if isinstance(answer, RecommendAnswer):
        return list(document["options"])
    if isinstance(answer, CapacityAnswer):
        shared = {name: document[name] for name in ("model", "gpu", "gpus", "weight_format", "kv_cache_dtype")}
        return [{**shared, **row} for row in document["table"]]
    return [dict(_flat(document))]


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    buffer = io.StringIO()
    if rows:
        writer = csv.DictWriter(buffer, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: _cell(value) for name, value in row.items()})
    return buffer.getvalue()


def _cell(value: Any) -> Any:
    """Return a cell that a spreadsheet does not run as a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value


def _lines(answer: SizeAnswer | CapacityAnswer | RecommendAnswer) -> list[str]:
    """Return the answer as a person reads it in a terminal."""
    if isinstance(answer, RecommendAnswer):
        head = f"{answer.model}: {len(answer.options)} options, {len(answer.rejected)} left out"
        return [head, *(_option_line(option) for option in answer.options)]
    memory, layout = answer.memory_per_gpu, answer.layout
    head = f"{answer.gpus} x {answer.gpu} for {answer.model} ({answer.weight_format}, cache {answer.kv_cache_dtype})"
    if not answer.feasible:
        head = f"does not fit: {answer.model} on {answer.gpu}, {answer.shortfall_bytes} bytes short per GPU"
        if not answer.shortfall_bytes:
            head = f"too slow: {answer.model} on {answer.gpu} does not keep the limits at any load"
    shape = f"{answer.replicas} replicas of TP{layout.tensor_parallel_size} PP{layout.pipeline_parallel_size}"
    parts = {
        "weights": memory.weight_bytes,
        "cache": memory.kv_cache_bytes,
        "activation": memory.activation_bytes,
        "total": memory.total_bytes,
    }
    if isinstance(answer, SizeAnswer) and answer.pools is not None:
        pools = answer.pools
        shape = (
            f"{pools.prefill_replicas} prefill replicas of TP{pools.prefill_tensor_parallel_size}, {shape} for decode"
        )
    ledger = ", ".join(f"{name} {size / GIB:.2f}" for name, size in parts.items())
    requests = answer.per_replica.max_concurrent_requests
    return [
        head,
        f"layout: {shape}; binds: {answer.binding_constraint}",
        f"per GPU [GiB]: {ledger}",
        f"requests at once: {requests} per replica; cache: {answer.kv_cache.tokens} tokens",
        *_latency_lines(answer),
        *((f"engine args: {shlex.join(answer.engine_args)}",) if answer.feasible else ()),
        *(f"would fit: {it}" for it in answer.would_fit),
        *(f"warning: {it}" for it in answer.warnings),
    ]


def _latency_lines(answer: SizeAnswer | CapacityAnswer) -> list[str]:
    latency, state = answer.latency, answer.at_load
    if latency is None or state is None:
        return []
    ttft, tpot = latency.ttft_s, latency.tpot_s
    return [
        f"load: {state.concurrent_requests:.0f} requests in flight, {state.requests_per_s:.3g} per s",
        f"TTFT p50 {ttft.p50:.3g} s, p95 {ttft.p95:.3g} s; TPOT p50 {tpot.p50:.3g} s, p95 {tpot.p95:.3g} s",
        f"from {latency.basis}, expected within {100 * latency.expected_error_fraction:.0f} %",
    ]


def _option_line(it: Option) -> str:
    shape = f"TP{it.tensor_parallel_size} PP{it.pipeline_parallel_size} x {it.replicas}, {it.weight_format}"
    price = "no published price" if it.usd_per_hour is None else f"{it.usd_per_hour:.2f} USD/h {it.instance_type}"
    return f"{it.rank}. {it.gpus} x {it.gpu} ({shape}) {price}"


def _prometheus(answer: SizeAnswer | CapacityAnswer | RecommendAnswer) -> str:
    """Return the numbers of an answer as gauges, with a final newline."""
    document = answer.model_dump(mode="json")
    labels = {"model": answer.model} | ({} if isinstance(answer, RecommendAnswer) else {"gpu": answer.gpu})
    if isinstance(answer, RecommendAnswer):
        document = {"options_count": len(answer.options), "best": document["options"][0]}
    lines: list[str] = []
    for path, value in _flat(document):
        if isinstance(value, int | float):
            name = "sizer_" + path.replace(".", "_")
            marks = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
            lines += [
                f"# TYPE {name} gauge",
                f"{name}{{{marks}}} {float(value) if isinstance(value, float) else int(value)}",
            ]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
