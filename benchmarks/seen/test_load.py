"""Lines 5 and 6: more questions than can be answered, and imports that take their time."""

import itertools
import json
import threading
import time

from benchmarks.http_load import closed_loop, echo, open_loop, post
from benchmarks.seen.checkout import Checkout, Running, soon, spent_s
from benchmarks.seen.questions import ORDINARY, distinct
from tests.hub.server import DRIP, running_hub

NUMBERS = itertools.count(1)
DISTINCT = (post(json.dumps(distinct(number)).encode()) for number in NUMBERS)


def test_5_distinct_questions_are_within_reach_of_a_bare_route(server: Running) -> None:
    """In seconds of the processor, which a busy machine leaves as they are."""
    body = server.post("/size", ORDINARY).body
    closed_loop(server.port, DISTINCT, 2, 1)
    before_s = server.processor_s()
    seen, _ = closed_loop(server.port, DISTINCT, 2, 3)
    one_s = (server.processor_s() - before_s) / max(seen.count(200), 1)
    with echo(body) as (port, process):
        bare = Running(port, process, server.log)
        before_s = bare.processor_s()
        seen, _ = closed_loop(port, itertools.repeat(post(json.dumps(ORDINARY).encode())), 4, 2)
        bare_s = (bare.processor_s() - before_s) / seen.count(200)

    assert bare_s / one_s > 0.0075, f"{bare_s / one_s:.4f} of a bare route"


def test_5_a_repeated_question_costs_no_more_than_a_bare_route(server: Running) -> None:
    body = server.post("/size", ORDINARY).body
    same = itertools.repeat(post(json.dumps(ORDINARY).encode()))
    soon(lambda: spent_s(server, lambda: time.sleep(1)) < 0.05, 60)  # what is made ready at a start is
    closed_loop(server.port, same, 4, 0.5)
    before_s = server.processor_s()
    seen, _ = closed_loop(server.port, same, 4, 2)
    one_s = (server.processor_s() - before_s) / seen.count(200)
    with echo(body) as (port, process):
        bare = Running(port, process, server.log)
        before_s = bare.processor_s()
        seen, _ = closed_loop(port, same, 4, 2)
        bare_s = (bare.processor_s() - before_s) / seen.count(200)

    assert bare_s / one_s > 1, f"{bare_s / one_s:.2f} of a bare route"


def test_5_four_times_the_capacity_leaves_goodput_and_tells_the_others(server: Running) -> None:
    closed_loop(server.port, DISTINCT, 2, 2)
    seen, took_s = closed_loop(server.port, DISTINCT, 2, 4)
    peak = seen.count(200) / took_s
    seen = open_loop(server.port, DISTINCT, 4 * peak, 6)
    good, told = seen.count(200) / 6, seen.count(429, 503)
    before_s = server.processor_s()
    time.sleep(3)
    idle_s = server.processor_s() - before_s

    assert told > 0, f"none of {4 * peak:.0f}/s is told 429 or 503; {good:.1f}/s good of {peak:.1f}"
    assert good > 0.5 * peak, f"{good:.1f}/s of {peak:.1f}"
    assert idle_s < 1, f"{idle_s:.1f} of 3 s for nobody"


def test_5_repeated_answers_do_not_starve_behind_eighty_askers(server: Running) -> None:
    server.post("/size", ORDINARY)
    server.post("/size", ORDINARY)
    asking = threading.Thread(target=closed_loop, args=(server.port, DISTINCT, 80, 8))
    asking.start()
    time.sleep(3)
    took_s = sorted(server.post("/size", ORDINARY).took_s for _ in range(3))
    asking.join()

    assert took_s[1] < 0.8, f"{1e3 * took_s[1]:.0f} ms"


def test_6_forty_five_imports_from_a_hub_that_drips_cost_no_answer(checkout: Checkout) -> None:
    with (
        running_hub() as url,
        checkout.served(hub_url=url, hub_allowed_hosts="127.0.0.1", private_addresses="true") as server,
    ):
        server.post("/size", ORDINARY)
        body = {"hf_id": DRIP}
        importing = [
            threading.Thread(
                target=server.asked, args=("POST", "/catalog/models/import", body, 10), kwargs={"x_api_key": "seen"}
            )
            for _ in range(45)
        ]
        for thread in importing:
            thread.start()
        time.sleep(2)
        answers = [server.post("/size", distinct(90_000 + number), 8).status for number in range(3)]
        for thread in importing:
            thread.join()

    assert 200 in answers, "no question is answered within 8 s"
