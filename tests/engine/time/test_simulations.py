"""The store of what was simulated."""

from service.engine.inputs import Limits
from service.engine.time.chance import MEASURED
from service.engine.time.demand import Users
from service.engine.time.replica import Replica


def test_a_whole_result_answers_for_every_limit(replica: Replica) -> None:

    replica.seen(Users(5))
    before = len(replica.simulations.results)
    for tpot_s in (0.009, 0.012, 0.015):
        replica.breaks(Users(5), Limits(tpot_s=tpot_s), MEASURED)

    assert len(replica.simulations.results) == before
    assert len(replica.simulations.verdicts) == 3
