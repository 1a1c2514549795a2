"""What a simulation works on: structured arrays, whose rows plain Python and compiled code both write to."""

from typing import Any, Final

import numpy as np

Record = Any  # a row of a structured array, whose fields NumPy and numba both read as attributes
Records = Any  # a structured array

MOST_KNOTS: Final = 48  # of the blocks a request holds, by its length
# Gaps between tokens are counted in bins of 2 to 3 %: so many for each doubling, from 2^-20 to 2^12 s.
BINS_PER_OCTAVE: Final = 32
LOWEST_OCTAVE: Final = -20
BINS: Final = 32 * BINS_PER_OCTAVE
HEAP_SLACK: Final = 64

# How a simulation ended.
SERVED: Final = 0
BREAKS_TTFT: Final = 1
BREAKS_TPOT: Final = 2
TOO_LONG: Final = 3

SHARES: Final = 5  # of all lengths of prompts, each as likely, that a ceiling looks at

# Powers of two: kernels waste part of a tile between them, which measurements show as steps of up to 40 %.
TOKENS: Final = tuple(float(1 << power) for power in range(15))
REQUESTS: Final = tuple(float(1 << power) for power in range(11))
CONTEXTS: Final = tuple(float(1 << power) for power in (4, 8, 10, 12, 14, 16, 17))  # attention is nearly linear
ATTENDED: Final = tuple(float(1 << power) for power in range(6, 17))

# Tables and constants of a step's time: the formulas are those of `performance.tables.TabledSteps`. With drafts,
# every request passes k + 1 tokens through the model and the drafter runs k times: `drafting.DraftingSteps`.
STEPS: Final = np.dtype(
    [
        ("requests", np.float64, len(REQUESTS)),
        ("contexts", np.float64, len(CONTEXTS)),
        ("decode_s", np.float64, (len(REQUESTS), len(CONTEXTS))),  # a whole iteration that only decodes
        ("batch_tokens", np.float64, len(TOKENS)),
        ("tokens_s", np.float64, len(TOKENS)),  # everything but attention, by tokens of the batch
        ("attended", np.float64, len(ATTENDED)),
        ("attention_s", np.float64, len(ATTENDED)),  # of one prompt token, by the tokens it attends to
        ("step_overhead_s", np.float64),
        ("sequence_overhead_s", np.float64),  # of each running request
        ("mixed_overhead_s", np.float64),  # more in iterations with prompts
        ("mixed_sequence_overhead_s", np.float64),  # the same for each request that decodes beside them
        ("request_overhead_s", np.float64),  # before the scheduler knows a request
        ("tokenizer_s_per_token", np.float64),
        ("let_in_s", np.float64),  # of each request that comes at the same time: one process lets them all in
        ("drafter_fraction", np.float64),  # of the model's layers
        ("drafted_tokens", np.int64),  # of each request in each step
    ],
    align=True,
)

REQUEST: Final = np.dtype(
    [
        ("input_tokens", np.int64),
        ("output_tokens", np.int64),
        ("cached_tokens", np.int64),  # of the prompt, computed before the simulation starts
        ("drafts_missed", np.float64),  # by chance more than of most answers, in standard deviations
        ("arrival", np.float64),  # of an open loop, at a mean rate of one per second; 0 in a closed loop
    ],
    align=True,
)

# Means of what one stream serves, and what it makes of a step: all that an estimate of its pace rests on.
PACE: Final = np.dtype(
    [
        ("input_tokens", np.float64),
        ("output_tokens", np.float64),
        ("new_tokens", np.float64),  # of a prompt, not in the prefix cache; 0 where prompts come read
        ("max_num_batched_tokens", np.float64),
        ("tokens_per_step", np.float64),
        ("streams", np.int64),
        ("slots", np.int64),
    ],
    align=True,
)

# Means of what one stream serves, and the limits that it is to keep: all that a ceiling of its load rests on.
CEILING: Final = np.dtype(
    [
        ("input_tokens", np.float64),
        ("new_tokens", np.float64),  # of a prompt, not in the prefix cache; 0 where prompts come read
        ("answer_steps", np.float64),  # that decode one answer behind its first token
        ("context_tokens", np.float64),  # of a request that decodes
        ("max_num_batched_tokens", np.float64),
        ("tokens_per_step", np.float64),
        ("tokens_scheduled", np.float64),
        ("streams", np.int64),
        ("slots", np.float64),  # of one stream
        ("is_of_users", np.bool_),  # of a closed loop; else arrivals
        ("reads_alone", np.bool_),
        ("own_share", np.float64),  # of a step, that goes by a copy's own tokens: of its prompt the rest may be others'
        ("own_tokens", np.float64),  # new ones of a prompt that only the tail exceeds
        ("prompt_shares", np.float64, SHARES),  # of a mean prompt: those that every so many are no longer than
        ("waits_as_poisson", np.bool_),  # arrivals do, or longer
        ("overhead_s", np.float64),  # of a request, before the scheduler knows it
        ("ttft_s", np.float64),  # infinite without a limit
        ("tpot_s", np.float64),
        ("tail_fraction", np.float64),  # of requests that may miss a limit
    ],
    align=True,
)

# The engine's settings, its cache, and what is measured: nothing here changes on the way.
ENGINE: Final = np.dtype(
    [
        ("max_num_batched_tokens", np.int64),
        ("max_num_seqs", np.int64),
        ("steps_planned_ahead", np.int64),  # iterations a new request sits out: planned before it came
        ("tokens_scheduled", np.int64),  # of each decoding request, accepted or not
        ("reserves_output", np.bool_),  # a request joins only with room for its last token: no eviction
        ("expects_output", np.bool_),  # a request joins only beside a share of what others have yet to write
        ("reads_alone", np.bool_),  # nobody decodes in iterations that read prompts
        ("read_every", np.int64),  # iterations, of which one reads prompts while others decode
        ("copies", np.int64),  # of the attention, that take every step together
        ("own_share", np.float64),  # of a step, that goes by a copy's own tokens; the rest by those of all
        ("tokens_per_step", np.float64),  # above 1 with speculative decoding: accepted drafts and the model's own
        ("steps_spread", np.float64),  # of an answer, by the chance of its drafts: deviation over its square root
        ("prefix_cache_hit_fraction", np.float64),
        ("num_blocks", np.float64),
        ("knots", np.int64),
        ("knot_tokens", np.float64, MOST_KNOTS),  # lengths of a request, and
        ("knot_blocks", np.float64, MOST_KNOTS),  # the blocks it holds: linear between knots and beyond the last
        ("users", np.int64),  # of a closed loop; 0 of an open one
        ("together", np.int64),  # requests that come at once, when the first do
        ("request_rate_per_s", np.float64),  # of an open loop
        ("first_measured", np.int64),
        ("last_measured", np.int64),
        ("ttft_limit_s", np.float64),
        ("tpot_limit_s", np.float64),
        ("skip_fraction", np.float64),  # of a context, by which it may grow in iterations taken for alike
        ("longest_skip", np.int64),  # iterations of decoding requests alone that are taken for alike in any context
        ("most_iterations", np.int64),
    ],
    align=True,
)

STATE: Final = np.dtype(
    [
        ("now_s", np.float64),
        ("step_s", np.float64),  # the latest iteration
        ("passed", np.float64),  # steps that copies decode while others read, of which none is taken yet
        ("held_s", np.float64),  # what decoding requests have waited for prompts since their latest token
        ("step", np.int64),  # the engine's iterations so far
        ("iterations", np.int64),  # the simulation's
        ("ended", np.int64),
        ("next_request", np.int64),
        ("first_waiting", np.int64),
        ("num_waiting", np.int64),
        ("num_prefilling", np.int64),
        ("num_decoding", np.int64),
        ("num_stacked", np.int64),
        ("num_chunks", np.int64),
        ("first_user", np.int64),  # free ones of a closed loop
        ("num_users", np.int64),
        ("heap_size", np.int64),
        ("joined", np.int64),  # requests that ever began to decode: breaks ties of the heap
        ("context_sum", np.float64),
        ("steps_left_sum", np.float64),  # of decoding requests, behind their latest token
        ("busy_since", np.int64),  # the step before which nobody ran
        ("reserved", np.float64),  # blocks that running requests may come to hold
        ("always_fit", np.float64),  # so many requests fit whatever happens; below, nobody needs to count blocks
        ("most_blocks", np.float64),
        ("most_tokens", np.int64),  # of an iteration that read prompts
        ("most_running", np.int64),  # requests of an iteration that read prompts: nobody joins in others
        ("longest_tokens", np.int64),  # of a request
        ("running_time", np.float64),
        ("preemptions", np.int64),
        ("measured_left", np.int64),
        ("ttft_left", np.int64),  # requests beyond the limit that still keep its percentile, and one
        ("tpot_left", np.int64),
        ("gap_tokens", np.float64, BINS),
        ("gap_time", np.float64, BINS),  # tokens x seconds
    ],
    align=True,
)

RUN: Final = np.dtype(
    [
        ("came_s", np.float64),
        ("known_s", np.float64),  # when the scheduler may first see it, after it came
        ("first_token_s", np.float64),
        ("context", np.float64),  # at the step in which decoding began
        ("reserved_blocks", np.float64),
        ("output_tokens", np.int64),
        ("prompt_tokens", np.int64),  # grows by what was generated when the request is preempted
        ("cached_tokens", np.int64),
        ("computed_tokens", np.int64),
        ("steps_left", np.int64),  # iterations that decode it
        ("joined_step", np.int64),
        ("finish_step", np.int64),
        ("is_decoding", np.bool_),
        ("first_entry", np.int64),  # of the heap, while that is tidied up
        ("ttft_s", np.float64),
        ("tpot_s", np.float64),
        ("end_to_end_s", np.float64),
        ("finished_s", np.float64),
    ],
    align=True,
)

# Lists of requests, one beside the other.
PLACE: Final = np.dtype(
    [
        ("waiting", np.int64),  # a ring
        ("prefilling", np.int64),
        ("stack", np.int64),  # decoding, in order of admission; finished ones are dropped lazily
        ("chunk_of", np.int64),  # prompts of this step
        ("chunk_tokens", np.int64),
        ("user_s", np.float64),  # a ring: when each free user of a closed loop sends
    ],
    align=True,
)

# Decoding requests, who finishes first on top.
ENTRY: Final = np.dtype([("last_step", np.int64), ("order", np.int64), ("request", np.int64)], align=True)


def new_records(count: int, kind: np.dtype[np.void]) -> Records:
    """Return so many rows of a kind, all zero."""
    return np.zeros(count, kind)
