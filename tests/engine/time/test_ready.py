"""What is compiled is compiled before the first question."""

import pytest

from service.engine.time import pace
from service.engine.time.compiled import IS_PLAIN
from service.engine.time.ready import make_ready


@pytest.mark.skipif(IS_PLAIN, reason="nothing is compiled")
@pytest.mark.parametrize("name", ["pace_s", "users_in_flight"])
def test_what_python_calls_has_machine_code_afterwards(name: str) -> None:
    make_ready()

    assert len(getattr(pace, name).signatures) > 0
