"""The store of what was simulated."""

from dataclasses import replace

import pytest

from service.engine.inputs import Limits
from service.engine.time.chance import MEASURED
from service.engine.time.demand import Arrivals, Demand, Users
from service.engine.time.replica import Replica
from service.engine.time.simulations import Simulations


def test_a_whole_result_answers_for_every_limit(replica: Replica) -> None:

    replica.seen(Users(5))
    before = len(replica.simulations.results)
    for tpot_s in (0.009, 0.012, 0.015):
        replica.breaks(Users(5), Limits(tpot_s=tpot_s), MEASURED)

    assert len(replica.simulations.results) == before
    assert len(replica.simulations.verdicts) == 3


@pytest.mark.parametrize("demand", [Users(12), Users(60), Arrivals(4.0), Arrivals(8.0), Arrivals(9.5), Arrivals(40.0)])
def test_what_breaks_one_limit_beside_another_breaks_it_alone(replica: Replica, demand: Demand) -> None:
    told = set()
    for ttft_s in (0.15, 0.3, 1.0, 4.0):
        for tpot_s in (0.0105, 0.012, 0.02, 0.05):
            both = Limits(ttft_s=ttft_s, tpot_s=tpot_s)
            first, second = (replace(replica, simulations=Simulations()) for _ in range(2))
            verdict = first.breaks(demand, both, MEASURED)
            alone = {"ttft": replace(both, tpot_s=None), "tpot": replace(both, ttft_s=None)}.get(str(verdict), both)
            told.add(verdict)
            assert second.breaks(demand, alone, MEASURED) == verdict
            of_first, of_second = (
                each.simulations.verdicts.get((each.key, demand, alone, MEASURED)) for each in (first, second)
            )
            assert of_first == of_second

    assert told - {None}
