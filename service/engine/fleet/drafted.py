"""Which layouts the engine would start where tokens are drafted: stages and ranks that the drafting layers allow.

    stages   SGLang: one. vLLM: one beside an EAGLE-3 head, unless the model's class hands its states on
    ranks    divide the head's own vocabulary, where the engine pads it to 64 alone

Sources:
    vLLM 0.33 `v1/worker/gpu/spec_decode/eagle/eagle3_utils.py` (`verify_supports_aux_hidden_states_over_pp`), since
    0.30; 0.20 to 0.29 `config/vllm.py`, `v1/worker/gpu/model_runner.py` ("EAGLE3 with pipeline parallelism"), which
    leave it to a runner whose last stage looks for the states of early layers among its own.
    SGLang 0.5.4 and 0.5.14 `server_args.py`, 0.5.23 `arg_groups/validation_hook.py` (`check_pipeline_parallel_compat`).
"""

from dataclasses import replace

from packaging.version import Version

from service.engine.engines.device import Device
from service.engine.errors import UnsupportedLayoutError
from service.engine.fleet.space import Space
from service.engine.inputs import EngineSettings, Layout
from service.engine.layers import Architecture, padded_vocabulary
from service.engine.memory.drafts import draft_of


def drafted_space(space: Space, architecture: Architecture, settings: EngineSettings, device: Device) -> Space:
    """Return the layouts of a space that start with these drafts.

    Raises:
        UnsupportedLayoutError: none does.
    """
    if not settings.num_speculative_tokens:
        return space
    refusals = {layout: _refusal(architecture, layout, settings, device) for layout in space.layouts}
    first = next((refusal for refusal in refusals.values() if refusal is not None), None)
    if first is None:
        return space
    usual, unusual = (
        tuple(layout for layout in layouts if refusals[layout] is None) for layouts in (space.usual, space.unusual)
    )
    if not usual and not unusual:
        raise first
    return replace(space, usual=usual or unusual, unusual=unusual if usual else ())


def _refusal(
    architecture: Architecture, layout: Layout, settings: EngineSettings, device: Device
) -> UnsupportedLayoutError | None:
    """Return why the engine does not draft in a layout; None where it does."""
    if layout.pipeline_parallel_size > 1 and not _drafts_in_stages(architecture, settings, device):
        return UnsupportedLayoutError(
            f"{device.engine} does not draft with {settings.speculative_method} for {architecture.name} in "
            "pipeline stages",
            field="pipeline_parallel_size",
            accepted="1, or num_speculative_tokens=0",
        )
    head = draft_of(architecture, settings)
    rows = 0 if head is None or device.plan.pads_vocabulary_for_ranks else padded_vocabulary(head.head_vocab_size)
    if rows % layout.tensor_parallel_size:
        return UnsupportedLayoutError(
            f"tensor_parallel_size {layout.tensor_parallel_size} does not divide the {rows} rows of the vocabulary of "
            f"the {settings.speculative_method} head, as padded",
            field="tensor_parallel_size",
            accepted=f"a divisor of {rows}, or num_speculative_tokens=0",
        )
    return None


def _drafts_in_stages(architecture: Architecture, settings: EngineSettings, device: Device) -> bool:
    if not device.is_vllm or settings.speculative_method != "eagle3":
        return device.plan.drafts_in_stages
    since = architecture.early_states_over_stages
    return bool(since) and Version(device.plan.version) >= Version(since)
