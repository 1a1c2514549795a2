"""What an answer says it rests on of a load."""

from service.engine.answers.noted import length, load_notes, stated_or_default
from service.engine.inputs import Load


def test_what_nobody_stated_is_a_default_with_its_reason() -> None:
    assert stated_or_default("burstiness", 1.0, 1.0, "Poisson").origin == "default"
    assert stated_or_default("burstiness", 1.0, 1.0, "Poisson").source == "Poisson"
    assert stated_or_default("burstiness", 4.0, 1.0, "Poisson").origin == "request"
    assert length("input_tokens", None).source == "not stated, so only the other length counts"


def test_a_rate_is_noted_with_how_it_arrives_or_how_long_it_stays() -> None:
    load = Load(concurrent_requests=None, request_rate_per_s=2.0, input_tokens=300, output_tokens=30)
    lasting = Load(
        concurrent_requests=None, request_rate_per_s=2.0, request_duration_s=9.0, input_tokens=300, output_tokens=30
    )

    noted = {note.name: note.value for note in load_notes(load)}

    assert noted["tokens_held_per_request"] == 330
    assert noted["burstiness"] == 1.0
    assert {note.name for note in load_notes(lasting)} - set(noted) == {"request_duration_s"}
