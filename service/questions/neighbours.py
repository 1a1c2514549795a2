"""What other tools and people call this service's fields; a wrong name is refused with the right one.

Sources:
    vLLM 0.33 `engine/arg_utils.py`, SGLang `server_args.py`, TensorRT-LLM `llmapi/llm_args.py`, `vllm bench serve`,
    GuideLLM, NVIDIA AIPerf and genai-perf: their options and, where they have them, short forms.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from rapidfuzz import fuzz, process

CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
CLOSE_SCORE: Final = 70  # of a field
CLOSE_OTHER_SCORE: Final = 80  # of what others call it
AS_CLOSE: Final = 10  # behind the likest
SHORT: Final = 4  # letters: any name is like one so short
MOST_CLOSE: Final = 2
UNIT: Final = re.compile(r"_(?:ms|msec|seconds|secs?|millis|milliseconds)$")

CALLED: Final[Mapping[str, str]] = {
    "model": "model_name model_id model_path hf_model hf_id hf_model_id checkpoint llm served_model_name repo repo_id",
    "model_config": "config hf_config config_json model_json",
    "gpu": "gpu_type gpu_name gpu_model accelerator accelerator_type device device_name hardware card instance "
    "instance_type machine_type",
    "gpus": "gpu_types allowed_gpus gpu_list include_gpus only_gpus",
    "exclude_gpus": "denied_gpus excluded_gpus without_gpus skip_gpus",
    "gpu_count": "num_gpus n_gpus gpus_count number_of_gpus gpu_num ngpu count replicas_gpus world_size",
    "max_gpus": "gpu_limit limit_gpus max_num_gpus",
    "max_model_len": "max_context_tokens context_length context_len context_window max_context max_context_length "
    "max_context_len max_seq_len max_sequence_length model_max_length ctx ctx_len ctx_size num_ctx n_ctx context "
    "context_size max_length seq_len sequence_length max_position_embeddings",
    "concurrent_requests": "concurrency users concurrent_users num_users max_concurrency parallel_requests "
    "num_concurrent concurrent simultaneous_requests request_concurrency streams virtual_users vus clients sessions "
    # as gauges of vLLM, SGLang and TGI are called
    "num_requests_running num_running_reqs batch_current_size running_requests inflight_requests in_flight_requests",
    "request_rate_per_s": "rps qps request_rate rate requests_per_second requests_per_s req_per_s throughput "
    "arrival_rate target_rps requests_per_sec rate_per_s requests tps tokens_per_second tokens_per_s tok_s output_tps "
    "rpm qpm rph rpd tpm requests_per_minute requests_per_min req_per_min requests_per_hour requests_per_day "
    "daily_requests tokens_per_minute",
    "request_duration_s": "duration request_duration duration_s session_length_s",
    "input_tokens": "isl input_len input_length prompt_tokens prompt_len prompt_length random_input_len "
    "num_prompt_tokens avg_input_tokens mean_input_tokens synthetic_input_tokens_mean input_sequence_length tokens_in "
    "prompt_size input_seq_len prompt input in_tokens context_tokens_in prefill_tokens",
    "output_tokens": "osl output_len output_length completion_tokens completion_len generated_tokens max_tokens "
    "max_new_tokens random_output_len num_output_tokens avg_output_tokens mean_output_tokens tokens_out "
    "output_sequence_length max_output_tokens gen_len decode_tokens output_seq_len completion_size out_tokens "
    "answer_tokens response_tokens",
    "ttft_s": "ttft time_to_first_token max_ttft ttft_limit first_token_latency ttft_slo target_ttft",
    "tpot_s": "tpot itl time_per_output_token inter_token_latency max_tpot tpot_limit tpot_slo itl_s decode_latency "
    "target_tpot tbt time_between_tokens",
    "percentile": "pct quantile latency_percentile slo_percentile p",
    "weight_format": "quant quantize precision dtype weight_dtype weights_dtype weight_precision q "
    "model_dtype quantization_format quant_method weight_quantization torch_dtype",
    "weight_formats": "quantizations precisions dtypes",
    "kv_cache_dtype": "kv_dtype cache_dtype kv_cache kv_precision kv_quantization kv_cache_precision kv_cache_quant",
    "engine": "backend framework runtime serving_engine inference_engine server",
    "engine_version": "vllm_version version backend_version sglang_version trtllm_version",
    "tensor_parallel_size": "tp tp_size tensor_parallel tensor_parallelism tensor_model_parallel_size "
    "gpus_per_replica gpus_per_pod gpus_per_instance",
    "pipeline_parallel_size": "pp pp_size pipeline_parallel pipeline_parallelism",
    "data_parallel_size": "dp dp_size data_parallel data_parallelism",
    "expert_parallel": "ep ep_size enable_expert_parallel expert_parallelism moe_expert_parallel_size "
    "expert_parallel_size",
    "all2all_backend": "moe_a2a_backend moe_all2all_backend a2a_backend ep_backend expert_parallel_backend",
    "enable_two_batch_overlap": "two_batch_overlap tbo enable_tbo enable_dbo dual_batch_overlap",
    "decode_context_parallel_size": "dcp dcp_size decode_context_parallel",
    "gpu_memory_utilization": "gpu_mem_util mem_fraction_static memory_utilization gpu_util gpu_utilization "
    "mem_fraction free_gpu_memory_fraction kv_cache_free_gpu_memory_fraction gpu_memory_fraction mem_util gmu",
    "kv_cache_memory_bytes": "kv_cache_bytes kv_cache_memory kv_cache_size cache_bytes kv_bytes",
    "max_num_batched_tokens": "chunked_prefill_size max_num_tokens max_batched_tokens max_batch_tokens token_budget "
    "max_prefill_tokens batch_tokens",
    "max_num_seqs": "max_running_requests max_batch_size batch_size max_seqs max_batch batch max_num_requests",
    "language_model_only": "limit_mm_per_prompt limit_per_prompt text_only disable_multimodal no_vision",
    "block_size": "page_size tokens_per_block kv_block_size",
    "max_loras": "num_loras lora_count loras max_loaded_loras enable_lora lora lora_modules lora_adapters adapters",
    "max_lora_rank": "lora_rank rank lora_r",
    "num_speculative_tokens": "speculative_tokens draft_tokens num_draft_tokens spec_tokens speculative_num_steps "
    "speculative_num_draft_tokens gamma",
    "speculative_method": "speculative_algorithm spec_method draft_method speculative spec_decode spec_decoding "
    "speculative_decoding speculative_config draft_model speculative_model spec drafter mtp eagle eagle3",
    "speculative_acceptance_fraction": "acceptance_rate acceptance spec_acceptance draft_acceptance_rate accept_rate",
    "prefix_cache_hit_fraction": "prefix_cache_hit_rate cache_hit_rate prefix_hit_rate cache_hit prefix_cache hit_rate "
    "gpu_prefix_cache_hit_rate",
    "length_distribution": "distribution len_distribution token_distribution",
    "length_variation_fraction": "random_range_ratio range_ratio length_variation length_std cv stddev_fraction",
    "burstiness": "burst arrival_burstiness",
    "arrival": "arrival_process arrival_pattern arrivals traffic_pattern",
    "num_prompts": "prompts request_count n_prompts num_requests total_requests",
    "spare_replicas": "spares spare redundancy n_plus_one extra_replicas",
    "headroom_fraction": "headroom margin safety_margin buffer reserve overhead target_utilization "
    "target_utilization_fraction utilization_target target_load peak_factor peak_to_average burst_factor growth",
    "discount_fraction": "discount discount_percent discount_pct rebate",
    "disaggregated": "disagg pd_disaggregation prefill_decode disaggregation pd",
    "max_usd_per_hour": "budget max_price price_limit budget_per_hour max_cost max_usd max_cost_per_hour usd_per_hour "
    "budget_usd_per_hour max_usd_per_month budget_per_month monthly_budget budget_usd_per_month max_cost_per_month",
    "usd_per_gpu_hour": "price price_per_hour gpu_price hourly_price price_per_gpu_hour cost_per_hour",
    "providers": "provider cloud clouds vendor vendors",
    "purchases": "purchase purchase_type pricing_model billing billing_model commitment commitment_months "
    "commitment_years commitment_term reservation reserved spot",
    "regions": "region location zone zones locations",
    "objective": "optimize optimise goal optimize_for minimize sort_by",
    "limit": "top top_k max_results n_results results",
    "format": "output_format response_format fmt output",
    "field": "select path jsonpath value key",
    "weight_bytes": "model_bytes weights_bytes model_size_bytes model_size",
    "num_parameters": "parameters params n_params param_count num_params model_params",
    "catalog_revision": "revision catalog_version",
}
# What one question takes and another answers: who else takes it.
TAKEN_BY: Final[Mapping[str, str]] = {
    **dict.fromkeys(("gpu_count", "num_prompts", "arrival"), "/capacity"),
    **dict.fromkeys(("spare_replicas", "headroom_fraction", "disaggregated"), "/size"),
    **dict.fromkeys(
        ("gpus", "exclude_gpus", "max_gpus", "max_usd_per_hour", "objective", "limit", "service_class"), "/recommend"
    ),
}
# In which unit a field stands, where the name that was written says another one.
OTHERWISE: Final = (
    (
        re.compile(r"(?:ttft|tpot|latency|duration|itl|tbt)\w*_(?:ms|msec|millis|milliseconds)"),
        "in seconds: 500 ms is 0.5",
    ),
    (re.compile(r"[rq]pm|req\w*_per_min(?:ute)?"), "of one second: 600 in a minute is 10"),
    (re.compile(r"(?:\w*_)?(?:eur|euros?|gbp|inr|cny|jpy|chf|sgd)(?:_\w*)?"), "in US dollars, as all prices here are"),
    (re.compile(r"commitment\w*"), "reserved, and each offer tells for how many months"),
    (re.compile(r"\w*(?:per_month|monthly)\w*"), "of one hour: 730 in a month is 1"),
    (re.compile(r"\w*(?:percent|pct)"), "a fraction: 25 % is 0.25"),
    (re.compile(r"target_util\w*|utilization_target|target_load"), "a target of 0.8 is a headroom of 0.25"),
    (re.compile(r"rph|req\w*_per_hour"), "of one second: 3600 in an hour is 1"),
    (
        re.compile(r"rpd|daily_requests|req\w*_per_day"),
        "of one second, of the busiest hour: 86400 in a day is 1 on average",
    ),
    (
        re.compile(r"tp[sm]|output_tps|tok\w*_(?:s|per_\w+)"),
        "requests, not tokens: tokens in a second over output_tokens",
    ),
)
RIGHT: Final[Mapping[str, str]] = {name: field for field, names in CALLED.items() for name in names.split()}


def written_here(field: str) -> str:
    """Return a name as this service writes its own: words in lower case, with underscores.

    >>> written_here("maxModelLen")
    'max_model_len'
    """
    return CAMEL.sub("_", field.strip().lstrip("-")).lower().replace("-", "_").replace(" ", "_").replace(".", "_")


def right_name(field: str, known: frozenset[str]) -> str | None:
    """Return the field that is meant by a name of another tool; None where none of those known is.

    >>> right_name("max_context_tokens", frozenset({"max_model_len"}))
    'max_model_len'
    """
    name = written_here(field)
    for spelling in (name, UNIT.sub("", name), UNIT.sub("_s", name)):
        meant = spelling if spelling in known else RIGHT.get(spelling)
        if meant in known:
            return meant
    return None


def unit_told(field: str) -> str:
    """Return how the field that is meant is measured, where a name says another unit; empty where it says none.

    >>> unit_told("ttft_ms"), unit_told("rpm"), unit_told("qps")
    ('; in seconds: 500 ms is 0.5', '; of one second: 600 in a minute is 10', '')
    """
    name = written_here(field)
    told = next((unit for written, unit in OTHERWISE if written.fullmatch(name)), None)
    return "" if told is None else f"; {told}"


def taken_elsewhere(field: str) -> str | None:
    """Return what other question takes a field, under the right name of it; None where none is known.

    >>> taken_elsewhere("numGpus")
    'did you mean gpu_count, which /capacity takes?'
    >>> taken_elsewhere("gpu_count")
    '/capacity takes it'
    """
    name = written_here(field)
    if field in TAKEN_BY:
        return f"{TAKEN_BY[field]} takes it"
    meant = name if name in TAKEN_BY else RIGHT.get(name, "")
    return f"did you mean {meant}, which {TAKEN_BY[meant]} takes?" if meant in TAKEN_BY else None


def close_names(field: str, known: Sequence[str]) -> tuple[str, ...]:
    """Return the fields that a misspelt name may mean, by their own names and those of other tools, the likest first.

    >>> close_names("concurency", ("concurrent_requests", "input_tokens"))
    ('concurrent_requests',)
    """
    name = written_here(field)
    others = [other for other, meant in RIGHT.items() if meant in known and len(other) > SHORT]
    scored = [
        *process.extract(name, known, scorer=fuzz.ratio, limit=MOST_CLOSE, score_cutoff=CLOSE_SCORE),
        *process.extract(name, others, scorer=fuzz.ratio, limit=MOST_CLOSE, score_cutoff=CLOSE_OTHER_SCORE),
    ]
    scored.sort(key=lambda each: -each[1])
    near = [other for other, score, _ in scored if score > scored[0][1] - AS_CLOSE]
    return tuple(dict.fromkeys(other if other in known else RIGHT[other] for other in near))[:MOST_CLOSE]
