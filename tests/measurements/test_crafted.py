"""A text that is crafted to take long takes no longer than any other of its length."""

import time

import pytest

from service.measurements.observed import UnreadableTextError
from service.measurements.reading import MOST_TEXT, read_measurement

LINES = {
    "digits": "1" * 7_900,
    "digits and commas": "1," * 99,
    "a beginning without an end": "Load weight end. " * 460,
    "words before many numbers": "KV " + "x" * 7_600 + " 1 tokens" * 40,
    "formats": "KV " + "FP8-" * 1_900,
    "arguments": "vllm serve a=b --x y " * 45,
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_a_crafted_text_costs_no_more_than_its_length(line: str) -> None:
    text = "\n".join([line] * (MOST_TEXT // 2 // (len(line) + 1)))
    began_at = time.thread_time()
    try:
        read_measurement(text)
    except UnreadableTextError as refusal:
        assert len(str(refusal)) < 1_000

    assert time.thread_time() - began_at < 5  # a fiftieth of it where nothing else runs; some took minutes


def test_a_text_longer_than_any_start_up_is_refused_by_its_length() -> None:
    with pytest.raises(UnreadableTextError, match="goes on after it"):
        read_measurement("a line\n" * (MOST_TEXT // 7 + 1))
