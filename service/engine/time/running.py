"""The requests inside one engine: whose prompts are read, who decodes, and the blocks they hold.

When a decoding request finds no block, the latest one is sent back to compute everything again.

Sources:
    vLLM 0.33, vllm/v1/core/sched/scheduler.py (Scheduler.schedule, preemption).
    TensorRT-LLM, CapacitySchedulerPolicy.GUARANTEED_NO_EVICT.
"""

from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush

from service.engine.time.batching import BlockPool, SchedulerSettings
from service.engine.time.traffic import Request


@dataclass(slots=True)
class Run:
    """A request on its way."""

    index: int
    arrival_s: float
    prompt_tokens: int  # grows by what was generated when the request is preempted
    steps_left: int  # iterations that decode it
    output_tokens: int
    cached_tokens: int
    computed_tokens: int = 0
    first_token_s: float = -1.0
    joined_step: int = 0  # decode step at which the context was `context_tokens`
    context_tokens: float = 0.0
    finish_step: int = 0
    is_decoding: bool = False
    reserved_blocks: float = 0.0


class Running:
    """Who is inside: queues, the sum of contexts, and blocks. Time is the caller's."""

    def __init__(self, pool: BlockPool, settings: SchedulerSettings, requests: tuple[Request, ...]) -> None:
        """Start empty.

        Args:
            pool: the cache of one rank.
            settings: budget and caps of a batch.
            requests: all that will ever come.
        """
        self.pool, self.settings = pool, settings
        self.step_index = 0
        self.waiting: deque[Run] = deque()
        self.prefilling: list[Run] = []
        self.decoding: list[tuple[int, int, Run]] = []  # heap by last step
        self.stack: list[Run] = []  # decoding, in order of admission; finished ones are dropped lazily
        self.num_decoding = 0
        self.context_sum = 0.0
        self.preemptions = 0
        self.reserved = 0.0  # blocks that running requests may come to hold
        self.pushes = 0  # breaks ties of the heap
        longest = max(request.input_tokens + request.output_tokens for request in requests)
        # So many requests fit whatever happens; below, nobody needs to count blocks.
        self.always_fit = pool.num_blocks / max(pool.of_request(longest), 1e-9)

    def blocks_in_use(self, later_steps: float = 0.0) -> float:
        """Return the blocks held so many steps from now, by the mean length of decoding requests."""
        used = 0.0
        if self.num_decoding:
            later = later_steps * self.settings.tokens_per_step
            used = self.num_decoding * self.pool.of_request(self.context_sum / self.num_decoding + later)
        for run in self.prefilling:
            used += self.pool.of_request(run.prompt_tokens)
        return used

    def make_room(self) -> None:
        """Send back the latest requests until every decoding one finds its next block."""
        if self.num_decoding + len(self.prefilling) < self.always_fit:
            return
        used = self.blocks_in_use(1.0)
        while used > self.pool.num_blocks and self.num_decoding + len(self.prefilling) > 1:
            run = self.prefilling.pop() if self.prefilling else self._stop_latest()
            run.computed_tokens = run.cached_tokens = 0
            self.preemptions += 1
            self.waiting.appendleft(run)
            used = self.blocks_in_use(1.0)

    def _stop_latest(self) -> Run:
        """Return the decoding request that joined last, as a prompt of everything it has so far."""
        run = self.stack.pop()
        while not run.is_decoding:
            run = self.stack.pop()
        context = self._context_of(run)
        self.context_sum -= context
        self.num_decoding -= 1
        run.steps_left = run.finish_step - self.step_index
        run.prompt_tokens = int(context)
        run.is_decoding = False
        return run

    def _context_of(self, run: Run) -> float:
        """Return the tokens that a decoding request attends to by now."""
        return run.context_tokens + (self.step_index - run.joined_step) * self.settings.tokens_per_step

    def start_decoding(self, run: Run) -> None:
        """Take in a request whose prompt is read, and whose first token is made."""
        run.steps_left -= 1
        run.joined_step = self.step_index
        run.context_tokens = run.prompt_tokens + 1
        run.finish_step = self.step_index + run.steps_left
        run.is_decoding = True
        self.num_decoding += 1
        self.context_sum += run.context_tokens
        self.stack.append(run)
        self.pushes += 1
        heappush(self.decoding, (run.finish_step, self.pushes, run))

    def finished(self) -> list[Run]:
        """Let requests go that have made their last token, and return them."""
        heap, gone = self.decoding, []
        while heap and heap[0][0] <= self.step_index:
            finish_step, _, run = heappop(heap)
            if not run.is_decoding or run.finish_step != finish_step:
                continue
            run.is_decoding = False
            self.num_decoding -= 1
            self.reserved -= run.reserved_blocks
            self.context_sum -= self._context_of(run)
            gone.append(run)
        if len(self.stack) > 4 * self.num_decoding + 64:
            self.stack = [run for run in self.stack if run.is_decoding]
        return gone

    def steps_to_next_finish(self) -> int:
        """Return the iterations until the first decoding request makes its last token."""
        heap = self.decoding
        while heap and not (heap[0][2].is_decoding and heap[0][2].finish_step == heap[0][0]):
            heappop(heap)  # it was preempted
        return heap[0][0] - self.step_index

    def steps_with_room(self, steps: int) -> int:
        """Return how many of the next iterations, at least one, need no more blocks than there are."""
        if steps <= 1 or (self.num_decoding < self.always_fit and not self.prefilling):
            return steps
        if self.blocks_in_use(steps) <= self.pool.num_blocks:
            return steps
        low, high = 1, steps
        while high - low > 1:
            middle = (low + high) // 2
            if self.blocks_in_use(middle) > self.pool.num_blocks:
                high = middle
            else:
                low = middle
        return low
