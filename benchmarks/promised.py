"""What is promised, the test or benchmark that holds it to that, and where its last figure stands.

A figure is a file of `benchmarks/results`, a row's name and a column of it; `seen` counts lines of the list that hold.
"""

from dataclasses import dataclass
from typing import Final

API, CATALOG, ENGINE = "tests/api/test_{}.py", "tests/catalog/test_{}.py", "tests/engine/{}.py"
DELIVERY: Final = "tests/test_delivery.py"
CHART: Final = "tests/test_chart.py"


@dataclass(frozen=True, slots=True)
class Promise:
    """One sentence, who holds it, and its last figures."""

    words: str
    test: str
    figures: tuple[str, ...] = ()


def api(words: str, file: str, name: str, *figures: str) -> Promise:
    return Promise(words, f"{API.format(file)}::test_{name}", figures)


def catalog(words: str, file: str, name: str, *figures: str) -> Promise:
    return Promise(words, f"{CATALOG.format(file)}::test_{name}", figures)


def delivery(words: str, name: str) -> Promise:
    return Promise(words, f"{DELIVERY}::test_{name}")


def chart(words: str, name: str) -> Promise:
    return Promise(words, f"{CHART}::test_{name}")


def benchmark(words: str, target: str, *figures: str) -> Promise:
    return Promise(words, f"make {target}", figures)


DESIGN: Final = (
    Promise("caches are those that the engine itself sets aside", "tests/engine/test_kv_oracle.py::test_capacity_equals_the_engine"),
    Promise("the ledger adds up to the byte", "tests/engine/answers/test_laws.py::test_the_ledger_adds_up_to_the_byte"),
    Promise("errors against measured data are printed, and made again by a command", "tests/test_accuracy.py::test_the_page_has_a_table_and_the_readme_names_it"),
    Promise("what cannot be better is not even planned", "tests/engine/fleet/test_choice.py::test_what_cannot_be_better_is_not_even_planned"),
    Promise("nothing stated is smaller or cheaper than the answer, by exhaustive enumeration [faults]", "tests/engine/fleet/test_referee.py::test_nothing_stated_is_smaller_or_cheaper", ("decision.json:size, memory:faults", "decision.json:size, limits:faults", "decision.json:size, limits, seed 77:faults", "decision.json:recommend, memory:faults", "decision.json:recommend, limits:faults")),
    benchmark("the lowest latency is that of every stated layout [faults of 30]", "decision", "decision.json:recommend, latency:faults"),
    benchmark("more GPUs carry no less, for every model [faults]", "decision", "decision.json:capacity, memory:faults", "decision.json:capacity, limits:faults", "decision.json:capacity, load:faults"),
    benchmark("every command starts, for every model on six GPUs [faults]", "decision", "decision.json:commands:faults"),
    Promise("no answer breaks its own limit", "tests/engine/answers/test_bounds.py::test_no_answer_breaks_its_own_limit"),
    Promise("what the engine refuses to start is refused", "tests/engine/test_kv_oracle_gpus.py::test_what_the_engine_refuses_to_start_is_refused"),
    catalog("every figure has a source and a date", "seed", "every_figure_has_a_source_and_a_date"),
    api("what was stated is not listed as a default", "questions", "what_was_stated_is_not_listed_as_a_default"),
)  # fmt: skip
SNAPSHOT: Final = (
    catalog("a write swaps the snapshot whole and leaves the rest as it was", "keeper", "a_write_is_in_use_at_once_and_leaves_the_rest_as_it_was"),
    catalog("the revision is looked up, and a write by somebody else seen", "keeper", "a_write_by_somebody_else_is_seen_after_a_refresh"),
    catalog("writes of another replica are heard of at once", "keeper", "writes_of_another_process_are_heard_of_at_once"),
    catalog("PostgreSQL's own notices are heard", "notices", "a_commit_is_heard_of"),
    catalog("the last good catalog on disk has a checksum", "disk", "a_file_in_which_a_byte_is_wrong_is_not_used"),
    catalog("it has a version of its format", "disk", "another_version_of_the_format_is_not_used"),
    catalog("the seed files are the last resort", "keeper", "without_database_and_disk_the_seed_files_answer"),
    catalog("a poisoned row keeps the old catalog and is named, and a start on it serves the last good one", "keeper", "a_poisoned_row_is_refused_and_named_and_polling_goes_on", "seen-now.json:4"),
    catalog("so do rows that only SQLite can hold", "keeper", "so_is_what_only_sqlite_can_hold"),
    catalog("a model of a kind that no rule reads is refused alone", "snapshot", "a_model_without_a_rule_is_refused_alone_and_forgets_who_asked"),
    api("a poisoned row raises a metric and shows in readiness", "health", "a_poisoned_row_is_named_and_the_catalog_before_it_in_use"),
    catalog("an emptied catalog is refused", "keeper", "an_emptied_catalog_is_refused"),
    api("two replicas on one PostgreSQL converge within 15 s", "catalog", "two_services_on_one_postgresql_converge"),
    api("what another process has just written is not missing", "catalog", "what_another_process_has_just_written_is_not_missing"),
    catalog("answers survive a dead database", "keeper", "answers_survive_a_dead_database"),
    api("a network that refuses, swallows, delays, cuts or drips costs writes, and passes", "database_faults", "a_fault_costs_writes_and_never_answers_and_passes"),
    api("a stopped PostgreSQL costs no answer", "writes", "sixty_writers_on_a_stopped_postgresql_cost_no_answer"),
    api("a SQLite that is corrupted, full, or of an older or newer schema costs no answer", "catalog_faults", "a_sqlite_that_breaks_costs_writes_and_never_answers"),
    api("a PostgreSQL that is read-only or restarted costs no answer", "catalog_faults", "a_postgresql_that_is_read_only_or_restarted_costs_writes_and_never_answers"),
    api("writers on a locked database cost no answer, and are refused within 2 s with Retry-After", "writes", "sixty_writers_on_a_locked_database_cost_no_answer", "seen-now.json:6"),
    api("a deleted SQLite is noticed, and its successor too, without a restart", "writes", "a_deleted_sqlite_is_noticed_and_its_successor_too"),
    api("a write whose outcome is not known is not said to be none", "writes", "a_database_that_falls_silent_in_the_middle_is_not_said_to_have_written_nothing"),
    api("answers say how old their catalog may be", "replies", "answers_say_how_old_the_catalog_may_be"),
    catalog("after five minutes it is stale, and said to be", "health", "five_minutes_after_it_was_confirmed_it_is_stale"),
    catalog("seeding takes back nothing that was written", "seeding", "a_price_written_over_the_api_stays_and_is_named", "seen-now.json:8"),
)  # fmt: skip
INPUT: Final = (
    api("three hundred hostile requests to every operation: no error of the service, short problems that reflect nothing, within 250 ms", "hostile", "an_operation_withstands_hostile_requests"),
    api("hostile bytes on a connection are no error of the service", "hostile_bytes", "hostile_bytes_are_refused_in_time_and_the_service_goes_on"),
    api("what nobody could mean is refused in time", "hostile_bytes", "what_nobody_could_mean_is_refused_in_time"),
    api("a thousand questions at once, all dear, cost no single one its answer", "batches", "a_thousand_mixed_questions_are_answered_while_a_caller_waits"),
    api("bodies are limited while they stream", "problems", "a_body_without_a_length_is_capped_too"),
    api("slow and silent connections are cut", "connections", "a_request_that_does_not_arrive_is_cut_with_the_reason", "seen-now.json:9"),
    api("headers are bounded", "connections", "more_headers_than_anybody_needs_are_refused"),
    api("connections never outnumber descriptors", "connections", "more_connections_than_allowed_are_told_so_and_the_others_are_served"),
    api("what is no HTTP gets a problem document", "connections", "what_is_no_http_gets_a_problem_document"),
    api("a caller's expression cannot stop the process", "pasted_configs", "an_expression_that_explodes_by_backtracking_is_answered", "seen-now.json:1"),
    api("a quantization that cannot be is refused by name", "pasted_configs", "a_quantization_that_cannot_be_is_refused_by_name"),
    api("a small request is little work, or refused", "bombs", "a_small_request_is_little_work", "seen-now.json:2"),
    api("a recommendation is bounded work", "bombs", "a_recommendation_over_every_format_is_bounded_work"),
    api("a small request takes little memory", "bombs", "a_small_request_takes_little_memory_and_leaves_less", "seen-now.json:3"),
    api("pasted configs leave little memory", "bombs", "three_hundred_pasted_configs_of_a_megabyte_leave_little_memory"),
    api("the dearest config that is accepted is read within 300 ms", "bombs", "the_dearest_config_that_is_accepted_is_read_within_300_ms"),
    Promise("a mangled config is read within bounds, or refused by name", "tests/engine/test_mangled_configs.py::test_a_mangled_config_is_read_within_bounds_or_refused_by_name"),
    Promise("the contract is what is served, by every check of schemathesis", "tests/contract/test_openapi.py::test_the_committed_contract_is_what_is_served"),
    api("a boolean is no number", "problems", "a_boolean_is_no_number", "seen-now.json:7"),
    catalog("a figure or a price out of bounds is refused", "figures", "a_figure_out_of_bounds_is_refused_with_the_bounds"),
    api("a value that PostgreSQL cannot hold is the caller's mistake", "writes", "a_value_that_postgresql_cannot_hold_is_the_caller_s_mistake"),
)  # fmt: skip
OUTWARD: Final = (
    Promise("sixty addresses, as a hub: nobody connects, by the sockets themselves", "tests/hub/test_no_connection.py::test_a_hub_that_is_not_allowed_is_not_even_looked_up"),
    Promise("sixty addresses, as a redirect: nobody follows", "tests/hub/test_no_connection.py::test_a_redirect_is_not_followed_there"),
    Promise("sixty addresses, as a model: the hub alone is asked", "tests/hub/test_no_connection.py::test_a_model_named_like_an_address_is_asked_of_the_hub_alone"),
    Promise("a name is resolved once, and that address connected to", "tests/hub/test_no_connection.py::test_a_name_is_looked_up_once_and_its_address_connected_to"),
    Promise("allowed names may not lead into private networks", "tests/hub/test_no_connection.py::test_an_allowed_name_that_leads_into_a_private_network_is_not_followed"),
    Promise("sixty addresses, as a Prometheus or an issuer's keys: nobody connects", "tests/outward/test_reader.py::test_sixty_addresses_are_not_connected_to"),
    Promise("private addresses are asked only where that is configured", "tests/outward/test_reader.py::test_private_addresses_are_asked_only_where_that_is_configured"),
    Promise("keys of tokens are not fetched from private addresses", "tests/access/test_tokens.py::test_keys_are_not_fetched_from_private_addresses_unless_that_is_configured"),
    Promise("a load is read from listed addresses alone", "tests/workloads/test_load_from.py::test_a_load_is_read_or_stated_and_from_listed_addresses_alone"),
    Promise("a document has a cap", "tests/hub/test_fetch.py::test_a_document_above_its_cap_is_refused_with_the_cap"),
    Promise("bombs that decompress are refused", "tests/hub/test_fetch.py::test_what_cannot_be_read_is_told_apart"),
    Promise("who trickles is given up on", "tests/hub/test_client.py::test_one_deadline_holds_however_busily_a_hub_trickles"),
    api("imports cost no answer", "import", "slow_imports_cost_no_answer_and_few_may_run"),
)  # fmt: skip
OVERLOAD: Final = (
    benchmark("at 2x, 4x and 10x of capacity goodput stays at 90 % of its peak", "overload", "overload.json:2x:of_peak", "overload.json:4x:of_peak", "overload.json:10x:of_peak"),
    benchmark("accepted p99 at most 250 ms [ms]", "overload", "overload.json:2x:good_p99_ms", "overload.json:4x:good_p99_ms", "overload.json:10x:good_p99_ms"),
    benchmark("the others told within 20 ms [ms]", "overload", "overload.json:2x:told_p99_ms", "overload.json:4x:told_p99_ms", "overload.json:10x:told_p99_ms"),
    benchmark("memory bounded [MB before, after]", "overload", "overload.json:memory:before_mb", "overload.json:memory:after_mb"),
    benchmark("normal within 2 s [p99 of one client right after, ms]", "overload", "overload.json:right after 10x, 1 client:good_p99_ms"),
    api("what would wait too long is told at once", "admission", "what_would_wait_too_long_is_told_at_once_and_when_to_ask_again"),
    api("a refusal costs next to nothing, and no kept answer", "front", "what_would_wait_too_long_is_refused_before_it_is_read_and_what_is_kept_is_not", "seen-now.json:5"),
    api("dear questions cost no cheap one its answer", "reception", "forty_five_dear_questions_cost_no_cheap_one_its_answer"),
    api("a dear question takes no turn of a quick one", "admission", "quick_questions_are_answered_however_many_dear_ones_were_asked"),
    api("a question is answered in time or told 503", "reception", "a_question_that_takes_too_long_is_told_so"),
    api("nobody is worked for who left", "reception", "a_question_whose_client_left_is_given_up"),
    api("what is kept is looked through for garbage when nobody waits", "reception", "all_that_is_kept_is_looked_through_for_garbage_when_nobody_waits"),
)  # fmt: skip
LIFE: Final = (
    api("no request that was taken fails on SIGTERM, which ends with 0", "lifecycle", "no_request_that_was_taken_fails_when_the_process_is_told_to_end"),
    api("a request on its way over a kept connection is answered by a service that ends", "connections", "a_request_on_its_way_over_a_kept_connection_is_answered_by_a_service_that_ends"),
    api("a process amid dear questions ends when told to", "lifecycle", "a_process_in_the_middle_of_dear_questions_ends_when_told_to"),
    api("a killed process leaves writes whole or not at all", "lifecycle", "a_process_killed_in_the_middle_of_writes_leaves_each_whole_or_not_at_all"),
    catalog("a killed import leaves all of it or nothing", "offer_import", "a_process_killed_in_the_middle_of_an_import_leaves_all_of_it_or_nothing"),
    api("fifty writers succeed or are told when to come again", "writes", "fifty_writers_succeed_or_are_told_when_to_come_again"),
    api("writers of one entry do not contradict themselves", "writes", "simultaneous_writers_of_one_gpu_do_not_contradict_themselves"),
    api("a write that names the entry it saw overwrites no other", "conditions", "an_entry_is_written_by_who_saw_it"),
    api("of racing writers who saw the same entry one wins", "conditions", "of_racing_writers_who_saw_the_same_one_wins"),
    api("every write of an entry is kept with who made it, and what stood there", "conditions", "who_wrote_an_entry_is_kept_with_what_stood_there"),
    catalog("migrations run beside the version before", "migrations", "the_version_before_goes_on_writing_beside_this_one"),
    catalog("migrations run up, down and up again", "migrations", "up_down_and_up_again"),
    benchmark("a minute of kills of three processes on one PostgreSQL: no wrong, torn or mixed answer, no lost write [kills, writes]", "soak", "soak.json:kills:kills", "soak.json:kills:writes"),
    benchmark("ten minutes at half of capacity: memory, descriptors, threads, p99 flat [MB, ms at the end]", "soak", "soak.json:flat:resident_mb", "soak.json:flat:p99_ms"),
)  # fmt: skip
SHELL: Final = (
    benchmark("a distinct question that needs no time: half of a bare route", "bench", "overload.json:distinct, latency=none:of_bare"),
    benchmark("a distinct question with latency: a tenth", "bench", "overload.json:distinct:of_bare"),
    benchmark("a repeated question: twice", "bench", "overload.json:repeated GET:of_bare", "overload.json:repeated POST:of_bare"),
    benchmark("304: twice", "bench", "overload.json:unchanged (304):of_bare"),
    benchmark("ten times the catalog: a question at most 1.2x, a start at most 1.5x", "bench", "growth.json:times:size_ms", "growth.json:times:start_s"),
    api("a repeated question is the same to the byte by either way", "front", "a_kept_answer_is_the_same_by_either_way_and_counted"),
    api("what has not changed is not sent again", "replies", "what_has_not_changed_is_not_sent_again"),
    Promise("memory alone needs no times", "tests/questions/test_size.py::test_memory_alone_needs_no_times"),
)  # fmt: skip
DELIVERED: Final = (
    delivery("the image is not root's, and compiles what it runs", "the_image_is_unprivileged_and_compiles_what_it_runs"),
    delivery("containers can change and take little: a root that is read-only", "a_container_can_change_and_take_little"),
    delivery("images are pinned by digest", "images_are_pinned_by_digest"),
    Promise("wheels are pinned by hash", "tests/test_project.py::test_locks_have_hashes_and_name_no_host"),
    delivery("the image's own commands are what is rehearsed", "the_image_s_own_commands_are_what_is_rehearsed"),
    delivery("two replicas behind a proxy on a healthy PostgreSQL, migrated first", "compose_starts_two_replicas_behind_a_proxy_on_a_healthy_postgresql"),
    delivery("the proxy has time-outs", "the_proxy_gives_up_before_clients_hold_it_and_after_the_service_answered"),
    delivery("a replica that goes costs no answer", "a_replica_that_goes_costs_no_answer"),
    delivery("compose has no password of its own", "compose_has_no_password_of_its_own"),
    delivery("the last good catalog outlives its container", "the_last_good_catalog_outlives_its_container_and_each_replica_has_its_own"),
    chart("the chart is what Kubernetes reads", "what_the_chart_says_is_what_kubernetes_reads"),
    chart("pods may do little", "pods_may_do_little"),
    chart("pods are probed, drained and spread", "pods_are_probed_drained_and_spread"),
    chart("the chart keeps replicas, scales, and lets few in and out", "the_chart_keeps_replicas_and_lets_few_in_and_out"),
    delivery("the bill of materials names every package with its hash", "the_bill_of_materials_names_every_locked_package_with_its_hash"),
    benchmark("known vulnerabilities are asked for, and a skip is loud", "audit"),
    api("every answer has security headers", "headers", "every_answer_is_taken_for_what_it_says", "seen-now.json:10"),
    api("no other site may read", "headers", "no_other_site_may_read_an_answer"),
    api("a missing key is challenged", "problems", "a_missing_key_is_challenged"),
    Promise("no secret is written anywhere", "tests/access/test_secrets.py::test_no_secret_is_written_anywhere"),
)  # fmt: skip
OUTSIDE, PROGRAMS, ASKED_BY = (
    "tests/workloads/test_outside.py",
    "tests/workloads/test_programs.py",
    "tests/workloads/test_examples.py",
)
ELSEWHERE: Final = (
    Promise("an autoscaler reads a whole number, by its own rules", f"{OUTSIDE}::test_keda_reads_a_whole_number_at_its_location"),
    Promise("where there is none it is told 4xx", f"{OUTSIDE}::test_keda_is_told_4xx_where_there_is_no_number"),
    Promise("pods of a workload are known before an autoscaler asks", "tests/workloads/test_ahead.py::test_workloads_are_answered_before_anybody_asks_and_again_when_one_is_another"),
    Promise("Prometheus itself discovers workloads, and stores their pods", f"{PROGRAMS}::test_prometheus_discovers_workloads_and_stores_their_pods"),
    Promise("every block of EXAMPLES.md is what a test replays", f"{ASKED_BY}::test_every_block_of_the_page_is_replayed_by_a_test"),
    Promise("a manifest of it keeps its published schema", f"{ASKED_BY}::test_a_manifest_keeps_its_published_schema"),
    Promise("spectral and redocly find no error", "tests/contract/test_programs.py::test_a_linter_finds_no_error"),
    Promise("a client in TypeScript is made by openapi-typescript, and asks", "tests/contract/test_programs.py::test_a_client_of_typescript_is_made_checked_and_asks"),
    Promise("a client in Python is made by openapi-python-client, and asks", "tests/contract/test_openapi.py::test_a_generated_client_can_ask"),
    Promise("of fifty racing writers of a workload one wins each version, and every write is recorded", "tests/workloads/test_workloads.py::test_fifty_racing_writers_lose_no_update_and_are_all_recorded"),
    Promise("each key opens what its scope says, at every operation", "tests/access/test_access.py::test_each_key_opens_what_its_scope_says"),
    Promise("so does each token", "tests/access/test_tokens.py::test_each_token_opens_what_its_scope_says"),
    Promise("an operation without a scope fails", "tests/access/test_access.py::test_every_operation_has_a_scope"),
    api("one bad row of a batch spoils nothing", "batches", "a_row_of_any_kind_spoils_nothing"),
)  # fmt: skip
PROMISED: Final = {
    "Answers": DESIGN,
    "Where it is asked from": ELSEWHERE,
    "Catalog": SNAPSHOT,
    "Bad input": INPUT,
    "Requests to others": OUTWARD,
    "Overload": OVERLOAD,
    "Life cycle": LIFE,
    "Speed of the shell": SHELL,
    "Delivery": DELIVERED,
}
