"""The ledger of one plan taken apart: the sizes that measured constants are multiplied with, and the buffers beside."""

from dataclasses import dataclass

from service.engine.engines.device import device_of
from service.engine.engines.rules import EngineRules
from service.engine.memory.activation import working_of
from service.engine.memory.captured import LARGEST_GRAPH_BATCH, captures_of
from service.engine.memory.ledger import (
    LayerKinds,
    layers_by_kind,
    non_torch_bytes,
    rules_of_model,
)
from service.engine.memory.plan import MemoryPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerTerms:
    """What the terms of a ledger are made of."""

    rules: EngineRules  # the row that speaks for this model
    sampled_logits: int
    hidden_bytes: int  # hidden states of one batch, all streams
    forward_bytes: int  # with workspaces, where they do not last
    lasting_bytes: int  # that a version may print beside the weights, not with the peak
    activation_bytes: int
    non_torch_bytes: int
    captured_batch: int  # the largest that is captured as a graph [tokens]
    captured_fraction: float  # of the largest that most versions capture
    layers: LayerKinds
    profiles_tower: bool


def ledger_terms(plan: MemoryPlan) -> LedgerTerms:
    """Return the terms of a plan's ledger."""
    architecture, layout, settings = plan.model.architecture, plan.layout, plan.settings
    rules = rules_of_model(architecture, plan.rules)
    device, encoder = device_of(plan.gpu, rules), architecture.encoder
    batch = settings.max_num_batched_tokens, settings.max_num_seqs
    working = working_of(architecture, layout, settings, rules, device)
    forward = working.forward_bytes(*batch)
    if not rules.keeps_workspaces:
        forward += working.workspace_bytes(settings.max_num_batched_tokens)
    captured = captures_of(settings, device).largest(*batch)
    return LedgerTerms(
        rules=rules,
        sampled_logits=working.sampled_logits(*batch),
        hidden_bytes=settings.max_num_batched_tokens * working.streams * working.hidden_bytes,
        forward_bytes=forward,
        lasting_bytes=working.lasting_bytes(*batch),
        activation_bytes=working.peak_bytes(*batch),
        non_torch_bytes=non_torch_bytes(plan.gpu, layout, rules, is_compiled=not settings.enforce_eager),
        captured_batch=captured,
        captured_fraction=captured / LARGEST_GRAPH_BATCH,
        layers=layers_by_kind(architecture),
        profiles_tower=encoder is not None and encoder.max_tokens_per_item > 0,
    )
