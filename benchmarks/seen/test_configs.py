"""Lines 1 to 3: what a small request may take."""

import threading
import time

import pytest

from benchmarks.seen.checkout import Running, soon, spent_s
from benchmarks.seen.questions import DEAR, EVERYTHING, LLAMA, LOAD, NEMOTRON, ORDINARY, TINY, pasted, path, quantized

ANSWER_S = 20.0
HEADERS = b"".join(b"a%05d: %b\r\n" % (number, b"b" * 60_000) for number in range(500))


def alive(server: Running) -> bool:
    return any(server.get("/livez", 2).status == 200 for _ in range(5))


def test_1_an_expression_that_backtracks_freezes_nothing(server: Running) -> None:
    server.post("/size", quantized(ignored_layers=["re:([a-z0-9_.]+)+!"]), 10)

    assert alive(server), "/livez does not answer"
    assert server.ends_within(15), "SIGTERM does not end it"


@pytest.mark.parametrize(
    "pattern", ["re:a{99999999999999999999}", "re:" + "(" * 5_000 + ")" * 5_000], ids=["a{9...}", "5,000 groups"]
)
def test_1_an_expression_that_cannot_be_read_is_the_caller_s_mistake(shared: Running, pattern: str) -> None:
    assert shared.post("/size", quantized(ignored_layers=[pattern]), ANSWER_S).status in (200, 422)


def test_2_one_token_a_step_is_little_work(server: Running) -> None:
    server.post("/size", ORDINARY)  # what is read once
    said = server.get(path(DEAR), 60)

    assert said.status in (200, 422, 503), "no answer within 60 s"


def test_2_forty_five_of_them_cost_no_cheap_question_its_answer(server: Running) -> None:
    server.post("/size", ORDINARY)
    dear = [
        threading.Thread(target=server.get, args=(path({**DEAR, "input_tokens": 29_000 + number}), 12))
        for number in range(45)
    ]
    for thread in dear:
        thread.start()
    time.sleep(3)
    during = [server.get(path({**ORDINARY, "concurrent_requests": 65 + number}), 8) for number in range(3)]
    for thread in dear:
        thread.join()
    after = [server.get(path({**ORDINARY, "concurrent_requests": 75 + number}), 8) for number in range(3)]

    assert any(said.status == 200 for said in during), "no cheap question was answered meanwhile"
    assert {said.status for said in after} == {200}, "cheap questions wait for clients who left"


def test_2_a_recommendation_over_every_format_ends(server: Running) -> None:
    said = server.post("/recommend", EVERYTHING, 60)

    assert said.status in (200, 422, 503), "no answer within 60 s"


def test_2_a_pattern_of_ten_thousand_layers_is_refused(server: Running) -> None:
    spent = spent_s(server, lambda: server.post("/size", pasted(NEMOTRON), 40))

    assert spent < 5, f"{spent:.0f} s of the processor"


def test_3_headers_are_bounded(server: Running) -> None:
    before = server.memory_mb()
    server.raw(b"GET /livez HTTP/1.1\r\nhost: here\r\nconnection: close\r\n" + HEADERS * 8 + b"\r\n", 30)

    grew = server.memory_mb("VmHWM") - before
    assert grew < 100, f"+{grew:.0f} MB"


def test_3_a_hundred_million_tokens_take_little_memory(server: Running) -> None:
    server.post("/size", ORDINARY)
    before = server.memory_mb()
    said = server.post("/size", pasted(TINY, input_tokens=1, output_tokens=100_000_000), 60)
    assert said.status in (200, 422, 503), "no answer within 60 s"

    grew = server.memory_mb("VmHWM") - before
    assert grew < 300, f"+{grew:.0f} MB"


def test_3_a_million_sequences_leave_little_memory(server: Running) -> None:
    server.post("/size", ORDINARY)
    before = server.memory_mb()
    for number in range(4):
        asked = {"input_tokens": 1, "output_tokens": 1 + number, "concurrent_requests": 10**7}
        server.post("/size", pasted(TINY, **asked, max_num_seqs=10**6, max_num_batched_tokens=10**7), 60)

    soon(lambda: server.memory_mb() - before < 200, 30)  # what refers to itself is looked for now and then
    grew = server.memory_mb() - before
    assert grew < 200, f"+{grew:.0f} MB"


def test_3_pasted_configs_of_a_megabyte_leave_little_memory(server: Running) -> None:
    server.post("/size", ORDINARY)
    before = server.memory_mb()
    for number in range(150):
        config = {**LLAMA, "vocab_size": 1_000 + number, "padding": "x" * 900_000}
        server.post("/size", {"model_config": config, **LOAD}, 30)

    grew = server.memory_mb() - before
    assert grew < 150, f"+{grew:.0f} MB"
