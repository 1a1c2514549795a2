"""What a question says of itself."""

from dataclasses import replace

import pytest

from service.engine.inputs import Limits, Load
from service.engine.time.carried import needs_time
from tests.engine.conftest import Asked, arrivals, users


@pytest.mark.parametrize("load", [users(3), arrivals(2.0), replace(arrivals(2.0), request_duration_s=9.0)])
def test_memory_alone_decides_where_time_does_not(asked: Asked, load: Load) -> None:
    question = asked(load=load)

    assert question.is_of_memory is not needs_time(load, question.limits)
    assert not replace(question, limits=Limits(tpot_s=1.0)).is_of_memory
