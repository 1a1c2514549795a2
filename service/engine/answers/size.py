"""`size`: this model, this load, this GPU type; how many?"""

from dataclasses import replace

from service.engine.answers.advice import binding_constraint, looser_pools, unlimited_waits, would_fit
from service.engine.answers.assumptions import size_assumptions
from service.engine.answers.confidence import at, confidence_of, median_only, stated_in
from service.engine.answers.described import Described, described
from service.engine.answers.gpu_steps import next_smaller, notches, one_step_less, one_step_more
from service.engine.answers.layout_notes import sized_layout
from service.engine.answers.levers import changes_that_fit, levers
from service.engine.answers.load_levers import load_levers
from service.engine.answers.outlasting import as_arrivals, left_out, outlast
from service.engine.answers.overlong import overlong
from service.engine.answers.plainer import plainer
from service.engine.answers.pools import pools_of
from service.engine.answers.priced import priced
from service.engine.answers.results import Sizing
from service.engine.answers.reuse import reuse_of
from service.engine.fleet.aims import aim_of
from service.engine.fleet.choice import deployments
from service.engine.fleet.costs import cheaper_apart, cheapest_of, fleet_of, price_notes
from service.engine.fleet.figures import figures
from service.engine.fleet.pools import pools_for
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.splitting import best_of
from service.engine.fleet.token_prices import with_token_prices
from service.engine.time.confidence import MEDIAN, sample_error

POOLS_WARNING = (
    "gpus, cost, ttft_s and end_to_end_s are of both pools; replicas, gpus_per_replica, layout, memory, at_load, "
    "saturation and engine_args are of the decode pool: pools has the replicas, the layout and the arguments of the "
    "prefill pool; the engine's own transfer of caches goes beside both"
)


def size(question: SizeQuestion, *, tells_levers: bool = True) -> Sizing:
    """Return the fewest GPUs of one type that carry the load, and the reason.

        gpus = min over legal layouts and open settings of
               (ceil(requests x (1 + headroom) / requests per replica) + spares)
               x tensor_parallel_size x pipeline_parallel_size x data_parallel_size

    Among equals the cheapest is taken, then the one with the lowest latency at the asked load. With a stated
    confidence every time is longer by what the basis may err, first seen with median times.

    Args:
        question: what was asked.
        tells_levers: what other settings and another load would save is looked for. [yes or no]

    Raises:
        EngineError: the question contradicts itself or names something without a rule.
    """
    if question.confidence is None:
        return _sized(question, tells_levers=tells_levers)
    is_median = question.confidence == MEDIAN
    median = _sized(at(question, MEDIAN), tells_levers=tells_levers and is_median)
    sample = sample_error(median.latency)
    answer = median if is_median else _sized(at(question, question.confidence), tells_levers=tells_levers)
    told = confidence_of(question, question.confidence, answer.gpus, median.latency, sample)
    return replace(answer, confidence=told, assumptions=stated_in(answer.assumptions, question.confidence))


def _sized(question: SizeQuestion, *, tells_levers: bool) -> Sizing:
    """Return the sizing under the times of the question."""
    if question.disaggregated:
        return _size_pools(question, tells_levers=tells_levers)
    answer, load = _size_whole(question, tells_levers=tells_levers), question.load
    answered = answer.at_load.requests_per_s if answer.at_load else None
    if not outlast(load, lambda: answered):
        return answer
    coming = as_arrivals(load)
    told = _size_whole(replace(question, load=coming), tells_levers=tells_levers)
    return replace(told, warnings=(*left_out(load, [coming], answered), *told.warnings))


def _size_whole(question: SizeQuestion, *, tells_levers: bool) -> Sizing:
    """Return the sizing of replicas that read and decode."""
    chosen = best_of(question, deployments(question))
    if question.load.alike is not None:
        question.load.alike.chosen(chosen.wanted_at_most(question.headroom))
    smaller = next_smaller(question, chosen)
    deployment = chosen.with_times(question.timers)
    told = figures(deployment, deployment.capacity)
    by_price = aim_of("cost", question.gpu, question.offers).cost(chosen.layout, chosen.replicas)
    binds = binding_constraint(chosen, smaller)
    saving = (*levers(question, chosen), *load_levers(question, chosen, binds)) if tells_levers else ()
    return Sizing(
        pools=None,
        binding_constraint=binds,
        would_fit=would_fit(chosen, question.limits, saving),
        confidence=median_only(),
        one_gpu_step_less=one_step_less(question, chosen, smaller),
        one_gpu_step_more=one_step_more(question, chosen),
        levers=saving,
        reuse=reuse_of(deployment, told, by_price),
        assumptions=(
            *sized_layout(question, deployment),
            *size_assumptions(question, deployment),
            *priced(question),
        ),
        **_with_warnings(
            described(question, deployment, told),
            (
                *unlimited_waits(question.limits, told.latency if deployment.load.phase == "both" else None),
                *overlong(deployment),
                *((*notches(question, chosen), *plainer(question, chosen)) if deployment.load.phase == "both" else ()),
            ),
        ),
    )


def _with_warnings(shared: Described, more: tuple[str, ...]) -> Described:
    return {**shared, "warnings": (*shared["warnings"], *more)}


def _size_pools(question: SizeQuestion, *, tells_levers: bool) -> Sizing:
    """Return the decode pool's sizing, with the prefill pool's GPUs and wait added."""
    pair = pools_for(question)
    prefill, feasible = pair.prefill, pair.is_feasible
    decode = _size_whole(pair.decoding, tells_levers=False)
    latency = decode.latency and pair.latency(decode.latency)
    fleets = tuple(fleet_of(pool.plan, pool.replicas) for pool in (pair.decode, pair.prefill))
    cost = cheapest_of(fleets, question.offers) if feasible else None
    binds = decode.binding_constraint if prefill.is_feasible else binding_constraint(prefill, None)
    missing = 0 if prefill.is_feasible else prefill.plan.shortfall_bytes
    wants_changes = tells_levers and not feasible
    changed = changes_that_fit(question, lambda other: pools_for(other).is_feasible) if wants_changes else ()
    return replace(
        decode,
        feasible=feasible,
        gpus=pair.gpus if feasible else 0,
        replicas=decode.replicas if feasible else 0,
        pools=pools_of(pair, question.flags),
        binding_constraint=binds,
        shortfall_bytes=max(decode.shortfall_bytes, missing),
        would_fit=(*looser_pools(pair, question.limits, decode.would_fit), *changed),
        latency=latency if feasible else None,
        at_load=decode.at_load if feasible else None,
        command=decode.command if feasible else None,
        one_gpu_step_less=None,
        one_gpu_step_more=None,
        levers=(),
        warnings=(
            *decode.warnings,
            *unlimited_waits(question.limits, latency if feasible else None),
            *(
                (*price_notes(cost, fleets, question), *cheaper_apart(cost, fleets, question.offers))
                if feasible
                else ()
            ),
            POOLS_WARNING,
        ),
        cost=cost and with_token_prices(cost, question.load, question.load.request_rate_per_s, None),
    )
