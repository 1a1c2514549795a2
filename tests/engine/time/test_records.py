"""Records are read by field, and start empty."""

import numpy as np
import pytest

from service.engine.time.records import BINS, BINS_PER_OCTAVE, REQUEST, STEPS, new_records


@pytest.mark.parametrize("kind", [STEPS, REQUEST])
def test_new_records_are_zero_and_their_own(kind: "np.dtype[np.void]") -> None:
    one, other = new_records(2, kind), new_records(2, kind)
    name = (kind.names or ())[0]
    one[0][name] = 1

    assert len(other) == 2
    assert not np.any(other[name])
    assert np.all(one[0][name] == 1)


def test_bins_are_2_to_3_per_cent_wide() -> None:
    assert 0.02 < 2 ** (1 / BINS_PER_OCTAVE) - 1 < 0.03
    assert BINS // BINS_PER_OCTAVE == 32
