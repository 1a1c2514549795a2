"""What an engine with a pool for each kind of layer has of each, and what one request takes of them.

    requests = min over pools of size / what one request holds

Source:
    SGLang `python/sglang/srt/model_executor/pool_configurator.py`.
"""

from dataclasses import dataclass

from service.engine.arithmetic import ceil_div


@dataclass(frozen=True, slots=True, kw_only=True)
class SeparatePools:
    """The pools of one rank; a request is counted in pages of the full pool, by the scarcest pool it draws on."""

    page_size: int  # [tokens]
    num_pages: int  # of the layers that keep every token
    full_bytes_per_token: int
    window_tokens: int  # slots of the windowed layers; 0 without such a pool
    window_bytes_per_token: int
    kept_in_windows: int  # of one request between steps [tokens]
    bytes_per_page: int  # with the slots of windows that a page of the full pool brings along
    is_capped: bool = False  # windows and states are those of all requests that may run, who never wait for them
    fixed_bytes: int = 0  # whatever the number of pages, and no state of a recurrent layer
    num_states: int
    states_per_request: int
    state_bytes: int  # of one request, all layers; 0 without recurrent layers

    @property
    def tokens(self) -> int:
        """Return `max_total_num_tokens`, as the engine prints it."""
        return self.num_pages * self.page_size

    def held_in_windows(self, num_tokens: int, in_flight_tokens: int) -> int:
        """Return the slots of the windowed pool that a request of this length may hold at once. [tokens]."""
        return min(num_tokens, self.kept_in_windows + in_flight_tokens) if self.window_tokens else 0

    def blocks_per_request(self, num_tokens: int, in_flight_tokens: int) -> int:
        """Return the pages that stand for one request: its share of the scarcest pool, of all pages.

        pages = max(tokens / page, pages x slots / window slots, (pages - 1) / requests that the states hold)

        What is capped bounds nobody.

        SGLang 0.5.19, its issue 38846: "max_running_requests is capped to 9 by the mamba state cache
        (max_mamba_cache_size=47, 5 state slots per request)":

        >>> pools = SeparatePools(
        ...     page_size=1, num_pages=100_000, full_bytes_per_token=1, window_tokens=0, window_bytes_per_token=0,
        ...     kept_in_windows=0, bytes_per_page=1, num_states=47, states_per_request=5, state_bytes=1)
        >>> (pools.num_pages - 1) // pools.blocks_per_request(1_000, 0)
        9
        """
        pages = ceil_div(num_tokens, self.page_size)
        if self.window_tokens and not self.is_capped:
            held = self.held_in_windows(num_tokens, in_flight_tokens)
            pages = max(pages, ceil_div(self.num_pages * held, self.window_tokens))
        if self.state_bytes and not self.is_capped:
            requests = self.num_states // self.states_per_request
            pages = max(pages, (self.num_pages - 1) // requests if requests else self.num_pages)
        return max(pages, 1)
