"""A client of the service: asks questions by name, waits where it is told to, and raises what was refused.

    with Client("http://127.0.0.1:8000", key=key) as client:
        client.ask("size", model="llama-3.1-8b", gpu="h100", concurrent_requests=8, input_tokens=900, output_tokens=90)

Only 429 and 503 are asked again, after as long as the service says: nothing else becomes right by repetition.
"""

import asyncio
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, TypeVar

import httpx2
from pydantic import TypeAdapter

AGAIN: Final = frozenset({429, 503})
NDJSON: Final = "application/x-ndjson"
OUTCOME: Final = ("index", "status", "answer", "problem")
MOST_WAIT_S: Final = 30.0
FIRST_WAIT_S: Final = 0.5
Result = TypeVar("Result")
Asks = Literal["size", "capacity", "replicas", "recommend", "compare"]


class RefusedError(RuntimeError):
    """The service's problem document: what was wrong, which field, what would be accepted."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        """Keep the problem."""
        super().__init__(str(problem.get("detail", f"status {status}")))
        self.status = status
        self.problem = problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one question of a batch: an answer, or a problem."""

    index: int
    status: int
    answer: Mapping[str, Any] | None = None
    problem: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _Call:
    """One request, ready to be sent, perhaps more than once."""

    method: str
    path: str
    params: Mapping[str, Any] | None = None
    body: Mapping[str, Any] | None = None


def _asking(question: Asks, fields: Mapping[str, Any]) -> _Call:
    return _Call("POST", f"/{question}", body=fields)


def _batch(question: Asks, questions: Sequence[Mapping[str, Any]]) -> _Call:
    return _Call("POST", f"/{question}:batch", body={"questions": list(questions)})


def _about(workload: str, question: Asks, overrides: Mapping[str, Any]) -> _Call:
    return _Call("GET", f"/workloads/{workload}/{question}", params=overrides)


def _checking(text: str, question: Mapping[str, Any], *, is_stored: bool) -> _Call:
    return _Call("POST", "/measurements", body={"text": text, "question": question, "store": is_stored})


def _wait_s(response: httpx2.Response, tries: int) -> float:
    """Return how long to wait: as told, else twice as long each time. [s]."""
    told = response.headers.get("retry-after", "")
    return min(float(told) if told.isdigit() else FIRST_WAIT_S * 2**tries, MOST_WAIT_S)


def _is_page(response: httpx2.Response) -> bool:
    """Return whether it is one for people, which no answer of the service is: another program, or a proxy, sent it."""
    return response.headers.get("content-type", "").startswith("text/html")


def _document(response: httpx2.Response) -> Mapping[str, Any]:
    """Return an answer.

    Raises:
        RefusedError: it is none.
    """
    is_page = _is_page(response)
    page = {"detail": f"a page answers there, with status {response.status_code}, and not this service"}
    try:
        document: Any = page if is_page else response.json()
    except ValueError:
        document = {"detail": response.text[:200]}
    document = document if isinstance(document, dict) else {"items": document}
    if response.status_code != 200 or is_page:
        raise RefusedError(response.status_code, document)
    kept: Mapping[str, Any] = document
    return kept


def _outcomes(document: Mapping[str, Any]) -> tuple[Outcome, ...]:
    return tuple(Outcome(**told) for told in document["answers"])


def _headers(key: str | None) -> dict[str, str]:
    return {"Accept": "application/json", **({} if key is None else {"X-API-Key": key})}


class Client:
    """Asks and waits."""

    def __init__(self, url: str, key: str | None = None, *, timeout_s: float = 60.0, most_tries: int = 4) -> None:
        """Keep where the service is, who asks, and how often at most."""
        self._http = httpx2.Client(base_url=url, headers=_headers(key), timeout=timeout_s)
        self._most_tries = most_tries

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the client."""
        self.close()

    def close(self) -> None:
        """Let go of connections."""
        self._http.close()

    def ask(self, question: Asks, **fields: Any) -> Mapping[str, Any]:
        """Return the answer to a question.

        Raises:
            RefusedError: it is refused, or the service stays busy.
        """
        return _document(self._send(_asking(question, fields)))

    def ask_many(self, question: Asks, questions: Sequence[Mapping[str, Any]]) -> tuple[Outcome, ...]:
        """Return what became of each question, in order."""
        return _outcomes(_document(self._send(_batch(question, questions))))

    def ask_as(self, kind: type[Result], question: Asks, **fields: Any) -> Result:
        """Return the answer as what the service computes, such as `Sizing` of `service.engine.answers.results`."""
        return TypeAdapter(kind).validate_python(self.ask(question, **fields))

    def text(self, question: Asks, **fields: Any) -> str:
        """Return the answer as it is written in the format that the fields state.

        Raises:
            RefusedError: it is refused, or the service stays busy.
        """
        response = self._send(_asking(question, fields))
        if response.status_code != 200 or _is_page(response):
            _document(response)
        return response.text

    def each(self, question: Asks, questions: Sequence[Mapping[str, Any]]) -> Iterator[Outcome]:
        """Yield what became of each question, in order, as it becomes known."""
        call = _batch(question, questions)
        for tries in range(self._most_tries):
            headers = {"Accept": NDJSON}
            with self._http.stream(call.method, call.path, json=call.body, headers=headers) as response:
                if response.status_code == 200 and not _is_page(response):
                    for line in response.iter_lines():
                        told = json.loads(line)
                        yield Outcome(**{name: told[name] for name in OUTCOME if name in told})
                    return
                response.read()
            if response.status_code not in AGAIN or tries + 1 == self._most_tries:
                _document(response)
            time.sleep(_wait_s(response, tries))

    def ask_about(self, workload: str, question: Asks, **overrides: Any) -> Mapping[str, Any]:
        """Return the answer to a question about a workload, with these fields in the place of its own."""
        return _document(self._send(_about(workload, question, overrides)))

    def check(self, text: str, question: Mapping[str, Any], *, is_stored: bool = False) -> Mapping[str, Any]:
        """Return what a log or a benchmark says beside the prediction; stored, answers rest on it from now on."""
        return _document(self._send(_checking(text, question, is_stored=is_stored)))

    def _send(self, call: _Call) -> httpx2.Response:
        for tries in range(self._most_tries):
            response = self._http.request(call.method, call.path, params=call.params, json=call.body)
            if response.status_code not in AGAIN or tries + 1 == self._most_tries:
                break
            time.sleep(_wait_s(response, tries))
        return response


class AsyncClient:
    """Asks, and lets others work meanwhile."""

    def __init__(self, url: str, key: str | None = None, *, timeout_s: float = 60.0, most_tries: int = 4) -> None:
        """Keep where the service is, who asks, and how often at most."""
        self._http = httpx2.AsyncClient(base_url=url, headers=_headers(key), timeout=timeout_s)
        self._most_tries = most_tries

    async def __aenter__(self) -> Self:
        """Return the client."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the client."""
        await self.close()

    async def close(self) -> None:
        """Let go of connections."""
        await self._http.aclose()

    async def ask(self, question: Asks, **fields: Any) -> Mapping[str, Any]:
        """Return the answer to a question.

        Raises:
            RefusedError: it is refused, or the service stays busy.
        """
        return _document(await self._send(_asking(question, fields)))

    async def ask_as(self, kind: type[Result], question: Asks, **fields: Any) -> Result:
        """Return the answer as what the service computes, such as `Sizing` of `service.engine.answers.results`."""
        return TypeAdapter(kind).validate_python(await self.ask(question, **fields))

    async def ask_many(self, question: Asks, questions: Sequence[Mapping[str, Any]]) -> tuple[Outcome, ...]:
        """Return what became of each question, in order."""
        return _outcomes(_document(await self._send(_batch(question, questions))))

    async def ask_about(self, workload: str, question: Asks, **overrides: Any) -> Mapping[str, Any]:
        """Return the answer to a question about a workload, with these fields in the place of its own."""
        return _document(await self._send(_about(workload, question, overrides)))

    async def check(self, text: str, question: Mapping[str, Any], *, is_stored: bool = False) -> Mapping[str, Any]:
        """Return what a log or a benchmark says beside the prediction; stored, answers rest on it from now on."""
        return _document(await self._send(_checking(text, question, is_stored=is_stored)))

    async def _send(self, call: _Call) -> httpx2.Response:
        for tries in range(self._most_tries):
            response = await self._http.request(call.method, call.path, params=call.params, json=call.body)
            if response.status_code not in AGAIN or tries + 1 == self._most_tries:
                break
            await asyncio.sleep(_wait_s(response, tries))
        return response
