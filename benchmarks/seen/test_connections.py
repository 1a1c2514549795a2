"""Lines 9 and 10: connections that say nothing, and what every answer carries."""

import json
import re
import socket
import threading
import time
from contextlib import ExitStack

from benchmarks.seen.checkout import Checkout, Running, soon
from benchmarks.seen.questions import DEAR, path


def idle(server: Running, count: int, stack: ExitStack) -> list[socket.socket]:
    """Open connections that say nothing."""
    opened = [socket.create_connection(("127.0.0.1", server.port), timeout=5) for _ in range(count)]
    for one in opened:
        stack.callback(one.close)
        one.setblocking(False)
    return opened


def is_closed(one: socket.socket) -> bool:
    try:
        return one.recv(1024) == b"" or is_closed(one)
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_9_connections_that_say_nothing_are_closed(shared: Running) -> None:
    with ExitStack() as stack:
        opened = idle(shared, 100, stack)
        left = [sum(not is_closed(one) for one in opened)]
        soon(lambda: left.append(sum(not is_closed(one) for one in opened)) or left[-1] == 0, 30)  # type: ignore[func-returns-value]

    assert left[-1] == 0, f"{left[-1]} of 100 are open after 30 s"


def test_9_fewer_descriptors_than_connections_end_no_service(checkout: Checkout) -> None:
    with checkout.served(descriptors=256) as server, ExitStack() as stack:
        idle(server, 300, stack)
        before_s = server.processor_s()
        time.sleep(3)
        busy_s, log_bytes = server.processor_s() - before_s, server.log.stat().st_size
        is_alive = soon(lambda: server.get("/livez", 3).status == 200, 15)

    assert log_bytes < 1 << 20, f"{log_bytes >> 20} MB of log"
    assert busy_s < 2, f"{busy_s:.1f} of 3 s busy"
    assert is_alive, "no service"


def test_9_a_process_that_is_told_to_end_does(checkout: Checkout) -> None:
    with checkout.served(shutdown_seconds="3") as server:
        asking = threading.Thread(target=server.get, args=(path(DEAR), 30))
        asking.start()
        time.sleep(2)
        has_ended = server.ends_within(15)
    asking.join()

    assert has_ended, "SIGTERM does not end it within 15 s of a dear question"


def test_10_every_answer_has_security_headers(shared: Running) -> None:
    headers = shared.get("/livez").headers

    assert headers.get("x-content-type-options") == "nosniff"
    assert "content-security-policy" in headers
    assert headers.get("server") is None


def test_10_a_missing_key_is_challenged(shared: Running) -> None:
    said = shared.asked("PUT", "/catalog/offers/made-up-offer", {})

    assert said.status == 401
    assert "www-authenticate" in said.headers


def test_10_what_is_no_http_gets_a_problem_document(shared: Running) -> None:
    answer = shared.raw(b"GARBAGE\r\n\r\n")

    assert b"application/problem+json" in answer
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["status"] == 400


def compose(checkout: Checkout) -> str:
    return (checkout.root / "docker-compose.yml").read_text(encoding="utf-8")


def test_10_compose_has_no_password_of_its_own(checkout: Checkout) -> None:
    assert ":-sizer}" not in compose(checkout)


def test_10_containers_are_bounded(checkout: Checkout) -> None:
    for stated in ("read_only: true", "cap_drop", "no-new-privileges", "mem_limit", "pids_limit", "/srv/sizer/var"):
        assert stated in compose(checkout), stated


def test_10_images_are_pinned_by_digest(checkout: Checkout) -> None:
    dockerfile = (checkout.root / "service" / "Dockerfile").read_text(encoding="utf-8")
    images = re.findall(r"^\s*image: (\S+)", compose(checkout), re.MULTILINE) + re.findall(
        r"^FROM (\S+)", dockerfile, re.MULTILINE
    )

    assert all("@sha256:" in image for image in images), images


def test_10_there_is_a_licence(checkout: Checkout) -> None:
    assert [*checkout.root.glob("LICENSE*"), *(checkout.root / "service").glob("LICENSE*")]
