"""What needs no thought is answered where it arrives, and is the same as what went the long way."""

import json
from collections.abc import Iterator

import pytest

from service.api.connections import Connection
from tests.api.served import Served, served

ADDRESS = b"/size?model=qwen3-32b&gpu=h100&concurrent_requests=8&input_tokens=900&output_tokens=90"
BODY = json.dumps(
    {"model": "qwen3-32b", "gpu": "h100", "concurrent_requests": 8, "input_tokens": 900, "output_tokens": 90}
).encode()
OF_THE_MOMENT = (b"date", b"x-catalog-age", b"x-request-id", b"server-timing")
LONG_WAY = b"content-length: 0"  # of a GET, which is odd enough


class Hasty(Connection):
    """The same with little patience for bodies."""

    body_s = 0.4


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("front"), Hasty) as running:
        yield running


def get(*headers: bytes, address: bytes = ADDRESS, version: bytes = b"1.1") -> bytes:
    return b"\r\n".join([b"GET " + address + b" HTTP/" + version, b"host: here", *headers, b"", b""])


def post(body: bytes = BODY) -> bytes:
    head = (b"POST /size HTTP/1.1", b"host: here", b"content-type: application/json", b"connection: close")
    return b"\r\n".join([*head, b"content-length: %d" % len(body), b"", body])


def parts(answer: bytes) -> tuple[int, dict[bytes, bytes], bytes]:
    """Return status, headers less those of the moment, and body."""
    head, body = answer.split(b"\r\n\r\n", 1)
    status, *lines = head.split(b"\r\n")
    headers = dict(line.split(b": ", 1) for line in lines)
    assert set(OF_THE_MOMENT) <= {*headers, b"x-catalog-age"}
    return int(status.split()[1]), {name: headers[name] for name in headers if name not in OF_THE_MOMENT}, body


def counted(service: Served, line: str) -> float:
    lines = service.said(get(b"connection: close", address=b"/metrics")).decode().splitlines()
    return sum(float(found.split()[-1]) for found in lines if found.startswith(line))


def test_a_kept_answer_is_the_same_by_either_way_and_counted(service: Served) -> None:
    first = parts(service.said(get(b"connection: close", LONG_WAY)))
    before = counted(service, 'sizer_kept_replies_total{route="/size"}')

    at_once = parts(service.said(get(b"connection: close")))
    unchanged = parts(service.said(get(b"connection: close", b"if-none-match: " + first[1][b"etag"])))

    assert at_once == first
    assert unchanged[0] == 304
    assert unchanged[2] == b""
    assert unchanged[1][b"etag"] == first[1][b"etag"]
    assert b"x-content-type-options" in unchanged[1]
    assert counted(service, 'sizer_kept_replies_total{route="/size"}') == before + 2


def test_a_body_in_pieces_is_put_together(service: Served) -> None:
    whole = service.said(post())

    with service.connected() as connection:
        request = post()
        for at in range(0, len(request), 60):
            connection.sendall(request[at : at + 60])
        answer = b""
        while part := connection.recv(65_536):
            answer += part

    assert parts(answer) == parts(whole)


def test_requests_sent_at_once_are_answered_in_turn(service: Served) -> None:
    other = ADDRESS.replace(b"900", b"901")
    many = [get(), get(address=other), get(address=b"/livez"), get(b"connection: close")]

    answers = service.said(b"".join(many)).split(b"HTTP/1.1 200 OK\r\n")[1:]

    bodies = [answer.split(b"\r\n\r\n", 1)[1] for answer in answers]
    assert len(bodies) == len(many)
    assert bodies[0] == bodies[3] != bodies[1]
    assert b'"gpus"' not in bodies[2]


def test_who_speaks_an_older_http_is_answered_and_let_go(service: Served) -> None:
    service.said(get(b"connection: close"))

    status, headers, _ = parts(service.said(get(version=b"1.0")))

    assert status == 200
    assert headers[b"connection"] == b"close"


def test_what_would_wait_too_long_is_refused_before_it_is_read_and_what_is_kept_is_not(service: Served) -> None:
    service.said(get(b"connection: close"))
    reception = service.app.state.reception
    before = counted(service, 'sizer_http_requests_total{method="POST",route="/size",status="503"}')
    reception.num_inside += 10_000
    try:
        refused = parts(service.said(post(b"{not even JSON")))
        the_long_way = parts(service.said(get(b"connection: close", LONG_WAY, address=ADDRESS + b"&format=yaml")))
        kept = service.said(get(b"connection: close"))
        alive = service.said(get(b"connection: close", address=b"/livez"))
    finally:
        reception.num_inside -= 10_000

    assert refused[0] == 503
    assert refused[1][b"Retry-After".lower()] == b"1"
    assert json.loads(refused[2])["type"] == "/problems/busy"
    assert refused == the_long_way
    assert parts(kept)[0] == parts(alive)[0] == 200
    assert counted(service, 'sizer_http_requests_total{method="POST",route="/size",status="503"}') == before + 1


def test_a_body_that_does_not_arrive_is_waited_for_no_longer_than_any(service: Served) -> None:
    answer = service.said(post()[:-10])

    assert answer.startswith(b"HTTP/1.1 408 ")
