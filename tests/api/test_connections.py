"""Connections keep within bounds: of headers, of number, and of the time they may take to say something."""

import json
import socket
from collections.abc import Iterator

import pytest

from service.api.connections import MOST_HEADER_BYTES, MOST_HEADERS, Connection, most_connections
from tests.api.served import Served, heard, served

MOST = 20


class Hasty(Connection):
    """The same with little patience, and few at once."""

    most = MOST
    headers_s, body_s = 0.3, 0.6


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("connections"), Hasty) as running:
        yield running


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def problem_of(answer: bytes) -> str:
    head, body = answer.split(b"\r\n\r\n", 1)
    assert b"content-type: application/problem+json" in head
    assert b"nosniff" in head
    return str(json.loads(body)["type"])


def get(*headers: bytes) -> bytes:
    return b"\r\n".join([b"GET /livez HTTP/1.1", b"host: here", b"connection: close", *headers, b"", b""])


def test_what_is_no_http_gets_a_problem_document(service: Served) -> None:
    answer = service.said(b"GARBAGE\r\n\r\n")

    assert status_of(answer) == 400
    assert problem_of(answer) == "/problems/bad-request"


@pytest.mark.parametrize(
    "request_",
    [
        get(*(b"a%d: b" % number for number in range(30_000))),
        get(*(b"a%d: b" % number for number in range(MOST_HEADERS + 1))),
        get(b"a: " + b"b" * MOST_HEADER_BYTES),
        get(b"a" * MOST_HEADER_BYTES + b": b"),
        b"GET /livez?" + b"a" * (MOST_HEADER_BYTES + 1) + b" HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n",
    ],
    ids=["30,000 headers", "a header too many", "a long value", "a long name", "a long address"],
)
def test_more_headers_than_anybody_needs_are_refused(service: Served, request_: bytes) -> None:
    answer = service.said(request_)

    assert status_of(answer) == 431
    assert problem_of(answer) == "/problems/headers-too-large"


def test_headers_without_an_end_are_cut_before_they_take_memory(service: Served) -> None:
    with service.connected() as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\n")
        sent = 0
        with pytest.raises((ConnectionError, TimeoutError)):  # noqa: PT012 - whichever comes first
            while sent < 64 << 20:
                sent += connection.send(b"a: b\r\n" * 1000)

    assert sent < 16 << 20  # what the kernel holds on the way


def test_as_many_headers_as_allowed_are_read(service: Served) -> None:
    assert status_of(service.said(get(*(b"a%d: b" % number for number in range(MOST_HEADERS - 2))))) == 200


@pytest.mark.parametrize(
    "begun",
    [
        b"GET /livez HTTP/1.1\r\nhost: he",
        b"POST /size HTTP/1.1\r\nhost: here\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{",
    ],
    ids=["headers", "a body"],
)
def test_a_request_that_does_not_arrive_is_cut_with_the_reason(service: Served, begun: bytes) -> None:
    answer = service.said(begun)

    assert status_of(answer) == 408
    assert problem_of(answer) == "/problems/too-slow"


def test_a_body_that_drips_is_cut_however_busily(service: Served) -> None:
    with service.connected(0.1) as connection:
        connection.sendall(
            b"POST /size HTTP/1.1\r\nhost: here\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n"
        )
        answer = b""
        for _ in range(200):  # at a tenth of a second each
            try:
                connection.sendall(b" ")
                answer += connection.recv(4096)
            except TimeoutError:
                continue
            except ConnectionError:
                break
            if answer:
                break

    assert status_of(answer) == 408


@pytest.mark.parametrize("first", [b"", get().replace(b"connection: close\r\n", b"")], ids=["nothing", "one request"])
def test_a_connection_that_says_nothing_more_is_closed(service: Served, first: bytes) -> None:
    with service.connected() as connection:
        connection.sendall(first)

        assert heard(connection).count(b"HTTP/1.1") == (1 if first else 0)


def test_more_connections_than_allowed_are_told_so_and_the_others_are_served(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    class Few(Connection):
        most = MOST

    with served(tmp_path_factory.mktemp("few"), Few) as service:
        held = [service.connected() for _ in range(MOST)]
        held[0].sendall(get())
        told = heard(held[0])
        replaced, refused = service.connected(), service.said(b"")
        for connection in (*held, replaced):
            connection.close()

    assert status_of(told) == 200
    assert status_of(refused) == 503
    assert problem_of(refused) == "/problems/busy"
    assert b"retry-after: 1" in refused.lower()


def test_a_request_on_its_way_over_a_kept_connection_is_answered_by_a_service_that_ends(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """And told to come no more; a client that keeps its connection busy loses nothing."""

    class Patient(Connection):
        linger_s = 10.0

    with served(tmp_path_factory.mktemp("ending"), Patient) as service:
        connections = [service.connected() for _ in range(3)]
        kept, question, streamed = connections
        kept.sendall(get().replace(b"connection: close\r\n", b""))
        first = kept.recv(65_536)
        service.end()
        kept.sendall(get().replace(b"connection: close\r\n", b""))
        question.sendall(b"GET /size?model=qwen3-8b&gpu=h100 HTTP/1.1\r\nhost: here\r\n\r\n")
        streamed.sendall(
            b"POST /size HTTP/1.1\r\nhost: here\r\ncontent-type: application/json\r\ncontent-length: 2\r\n"
        )
        streamed.sendall(b"\r\n{}")
        answers = [heard(connection) for connection in connections]
        for connection in connections:
            connection.close()

    assert b"connection: close" not in first
    assert [status_of(answer) for answer in answers] == [200, 422, 422]
    assert all(b"connection: close" in answer for answer in answers)


def test_no_more_connections_are_taken_than_there_are_descriptors_for() -> None:
    import resource  # noqa: PLC0415

    most = most_connections()

    assert most < resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def test_two_requests_at_once_on_one_connection_are_answered_in_turn(service: Served) -> None:
    plain = get().replace(b"connection: close\r\n", b"")

    answer = service.said(plain + get())

    assert answer.count(b"HTTP/1.1 200") == 2


def test_a_client_that_resets_leaves_nothing_behind(service: Served) -> None:
    connection = service.connected()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    connection.sendall(
        b"POST /size HTTP/1.1\r\nhost: here\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{"
    )
    connection.close()

    assert status_of(service.said(get())) == 200
