"""What is said of a confidence beside the count."""

from service.engine.answers.confidence import median_only, stated_in
from service.engine.fleet.results import Assumption


def test_nobody_s_confidence_is_the_median_and_shows_no_other_count() -> None:
    said = median_only()

    assert (said.probability, said.slowdown, said.counts) == (0.5, 1.0, ())


def test_a_stated_confidence_takes_the_place_of_the_default_and_touches_nothing_else() -> None:
    default = Assumption(name="confidence", value=0.5, origin="default", source="a source")
    other = Assumption(name="block_size", value=16, origin="default", source=None)

    told = stated_in((other, default), 0.9)

    assert told[0] == other
    assert (told[1].value, told[1].origin) == (0.9, "request")
