"""Quick questions are answered where they arrive, as they would be the long way, and never keep the rest waiting."""

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

from service.api.at_once import BURST_S, QUICK_S, AtOnce, Quick, Share
from service.api.connections import Connection
from service.catalog.snapshot import Snapshot
from service.questions.asked import Desk
from service.questions.refusals import RefusalError
from service.questions.size import SIZE, SizeBody
from tests.api.served import Served, served
from tests.api.test_front import LONG_WAY, counted, get, parts

ASKED: dict[str, Any] = {
    "model": "qwen3-32b", "gpu": "h100", "concurrent_requests": 8, "input_tokens": 900, "output_tokens": 90,
    "latency": "none",
}  # fmt: skip
TEMPLATE = "/size?model=qwen3-32b&gpu=h100&concurrent_requests=8&input_tokens={}&output_tokens=90&latency=none{}"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("quick"), Connection) as running:
        yield running


def ask(service: Served, tokens: int, *headers: bytes, more: str = "") -> tuple[int, dict[bytes, bytes], bytes]:
    return parts(service.said(get(b"connection: close", *headers, address=TEMPLATE.format(tokens, more).encode())))


def post(service: Served, body: bytes) -> tuple[int, dict[bytes, bytes], bytes]:
    head = (b"POST /size HTTP/1.1", b"host: here", b"content-type: application/json", b"connection: close")
    return parts(service.said(b"\r\n".join([*head, b"content-length: %d" % len(body), b"", body])))


def in_threads(service: Served) -> int:
    """Return how many questions were handed to a thread."""
    return int(service.app.state.reception.num_computed)


@pytest.fixture(scope="module")
def quick(service: Served) -> Served:
    """The service, once it has seen the kind."""
    for tokens in range(900, 904):
        ask(service, tokens)
    body = json.dumps(ASKED).encode()
    post(service, body)
    return service


Told = TypeVar("Told")


def told_at_once(service: Served, asked: Callable[[int], Told], first: int) -> tuple[int, Told]:
    """Ask for one length after the other until no thread is needed: a busy machine may make an answer a slow one."""
    kinds = service.app.state.reception.at_once.quick
    for tokens in range(first, first + 20):
        for kind in kinds.known():
            kinds.tell(kind, QUICK_S / 10)
        begun = in_threads(service)
        answer = asked(tokens)
        if in_threads(service) == begun:
            return tokens, answer
    raise AssertionError("none of twenty questions was answered at once")


@pytest.mark.parametrize("more", ["", "&field=gpus", "&field=kv_cache.tokens"])
def test_an_answer_at_once_is_the_one_of_the_long_way(quick: Served, more: str) -> None:
    tokens, at_once = told_at_once(quick, lambda tokens: ask(quick, tokens, more=more), 1_000)

    begun = in_threads(quick)
    quick.app.state.reception.desk.kept.clear()
    the_long_way = ask(quick, tokens, LONG_WAY, more=f"{more}&workload=x")

    assert at_once[0] == 200
    assert at_once[2] == the_long_way[2]
    assert {*at_once[1]} == {*the_long_way[1]}
    assert at_once[1][b"etag"] == the_long_way[1][b"etag"]
    assert in_threads(quick) == begun + 1


def test_a_body_at_once_is_answered_as_a_query_is_and_kept(quick: Served) -> None:
    def asked(tokens: int) -> tuple[list[tuple[int, dict[bytes, bytes], bytes]], float]:
        kept = counted(quick, 'sizer_kept_replies_total{route="/size"}')
        body = json.dumps({**ASKED, "input_tokens": tokens}).encode()
        answers = [post(quick, body), post(quick, body), ask(quick, tokens)]
        return answers, counted(quick, 'sizer_kept_replies_total{route="/size"}') - kept

    _, (answers, num_kept) = told_at_once(quick, asked, 1_100)

    assert [status for status, _, _ in answers] == [200, 200, 200]
    assert answers[0] == answers[1]
    assert answers[0][2] == answers[2][2]
    assert num_kept == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (json.dumps({**ASKED, "inputtokens": 5}).encode(), 422),
        (json.dumps({**ASKED, "model": "no-such-model"}).encode(), 404),
        (json.dumps(ASKED).encode()[:-1] + b', "gpu": "l4"}', 422),
        (json.dumps({**ASKED, "catalog_revision": 99}).encode(), 409),
        (b"[" * 3_000, 400),
        (b"[]", 422),
        (json.dumps({**ASKED, "ttft_s": 1}).encode(), 422),
    ],
    ids=["misspelt", "unknown", "stated twice", "another revision", "nested", "no object", "needs times"],
)
def test_what_is_wrong_is_told_the_long_way(quick: Served, body: bytes, status: int) -> None:
    answer = post(quick, body)

    assert answer[0] == status
    assert answer[1][b"content-type"] == b"application/problem+json"


def test_a_kind_is_quick_once_it_was_and_no_longer_when_it_grows_slow() -> None:
    quick = Quick()
    assert not quick.has("size")

    quick.tell("size", 10 * QUICK_S)  # the first of a model reads its weights
    assert not quick.has("size")
    quick.tell("size", QUICK_S / 2)
    assert quick.has("size")
    for _ in range(3):
        quick.tell("size", 3 * QUICK_S)
    assert not quick.has("size")


def test_the_event_loop_has_time_for_others() -> None:
    share = Share()
    assert not share.is_spent

    share.spend(2 * BURST_S)

    assert share.is_spent


def test_what_is_kept_is_told_at_once_though_it_took_times_or_was_spelled_otherwise(catalog: Snapshot) -> None:
    desk = Desk(timers=None)
    at_once, timed = AtOnce(desk), {**ASKED, "latency": "full"}
    assert at_once.answer(SIZE, SizeBody(**timed), catalog) is None

    answer = desk.answer(SIZE, SizeBody(**timed), catalog)

    assert at_once.answer(SIZE, SizeBody(**{**timed, "gpu": " h100 "}), catalog) is answer
    with pytest.raises(RefusalError):
        at_once.answer(SIZE, SizeBody(**timed, catalog_revision=99), catalog)
