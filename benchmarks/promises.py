"""What the service promises, the tests that hold it to that, and the last figures: `make promises`."""

import json
from pathlib import Path
from typing import Any

PAGE = Path("service/PROMISES.md")
OVERLOAD, SOAK = Path(".benchmarks/overload.json"), Path(".benchmarks/soak.json")
GROWTH = Path(".benchmarks/growth.json")
# A promise, and the test functions that fail where it is broken.
PROMISES: tuple[tuple[str, str], ...] = (
    ("correct: caches are those that the engine itself sets aside", "tests/engine/test_kv_oracle.py::test_capacity_equals_the_engine"),
    ("correct: the ledger adds up to the byte", "tests/engine/answers/test_laws.py::test_the_ledger_adds_up_to_the_byte"),
    ("calibrated: errors against measured data are printed, and made again by a command", "tests/test_accuracy.py::test_the_page_has_a_table_and_the_readme_names_it"),
    ("fast: a question that nobody asked before is little work", "tests/api/test_bombs.py::test_a_small_request_is_little_work"),
    ("fast: what cannot be better is not even planned", "tests/engine/fleet/test_choice.py::test_what_cannot_be_better_is_not_even_planned"),
    ("decided: nothing stated is smaller or cheaper than the answer", "tests/engine/fleet/test_referee.py::test_no_stated_layout_or_setting_is_smaller_or_cheaper"),
    ("decided: no answer breaks its own limit", "tests/engine/answers/test_bounds.py::test_no_answer_breaks_its_own_limit"),
    ("starts: what the engine refuses to start is refused", "tests/engine/test_kv_oracle_gpus.py::test_what_the_engine_refuses_to_start_is_refused"),
    ("honest: every figure has a source and a date", "tests/catalog/test_seed.py::test_every_figure_has_a_source_and_a_date"),
    ("honest: what was stated is not listed as a default", "tests/api/test_questions.py::test_what_was_stated_is_not_listed_as_a_default"),
    ("a caller's expression cannot stop the process", "tests/api/test_pasted_configs.py::test_an_expression_that_explodes_by_backtracking_is_answered"),
    ("a small request is little work, or refused", "tests/api/test_bombs.py::test_a_small_request_is_little_work"),
    ("a recommendation is bounded work", "tests/api/test_bombs.py::test_a_recommendation_over_every_format_is_bounded_work"),
    ("dear questions cost no cheap one its answer", "tests/api/test_reception.py::test_forty_five_dear_questions_cost_no_cheap_one_its_answer"),
    ("nobody is worked for who left", "tests/api/test_reception.py::test_a_question_whose_client_left_is_given_up"),
    ("a question is answered in time or told 503", "tests/api/test_reception.py::test_a_question_that_takes_too_long_is_told_so"),
    ("what would wait too long is told at once", "tests/api/test_admission.py::test_what_would_wait_too_long_is_told_at_once_and_when_to_ask_again"),
    ("headers are bounded", "tests/api/test_connections.py::test_more_headers_than_anybody_needs_are_refused"),
    ("a small request takes little memory", "tests/api/test_bombs.py::test_a_small_request_takes_little_memory_and_leaves_less"),
    ("pasted configs leave little memory", "tests/api/test_bombs.py::test_three_hundred_pasted_configs_of_a_megabyte_leave_little_memory"),
    ("a poisoned row keeps the old catalog, and is named", "tests/catalog/test_keeper.py::test_a_poisoned_row_is_refused_and_named_and_polling_goes_on"),
    ("imports and writes cost no answer", "tests/api/test_import.py::test_slow_imports_cost_no_answer_and_few_may_run"),
    ("writers on a locked database cost no answer", "tests/api/test_writes.py::test_sixty_writers_on_a_locked_database_cost_no_answer"),
    ("a stopped PostgreSQL costs no answer", "tests/api/test_writes.py::test_sixty_writers_on_a_stopped_postgresql_cost_no_answer"),
    ("a faulty network costs writes, and passes", "tests/api/test_database_faults.py::test_a_fault_costs_writes_and_never_answers_and_passes"),
    ("an emptied catalog is refused", "tests/catalog/test_keeper.py::test_an_emptied_catalog_is_refused"),
    ("fifty writers succeed or are told when to come again", "tests/api/test_writes.py::test_fifty_writers_succeed_or_are_told_when_to_come_again"),
    ("seeding takes back nothing that was written", "tests/catalog/test_seeding.py::test_a_price_written_over_the_api_stays_and_is_named"),
    ("slow and silent connections are closed", "tests/api/test_connections.py::test_a_request_that_does_not_arrive_is_cut_with_the_reason"),
    ("connections never outnumber descriptors", "tests/api/test_connections.py::test_more_connections_than_allowed_are_told_so_and_the_others_are_served"),
    ("what is no HTTP gets a problem document", "tests/api/test_connections.py::test_what_is_no_http_gets_a_problem_document"),
    ("hostile requests are no error of the service", "tests/api/test_hostile.py::test_an_operation_withstands_hostile_requests"),
    ("an import asks the allowed hosts alone", "tests/hub/test_no_connection.py::test_a_hub_that_is_not_allowed_is_not_even_looked_up"),
    ("no request that was taken fails on SIGTERM", "tests/api/test_lifecycle.py::test_no_request_that_was_taken_fails_when_the_process_is_told_to_end"),
    ("a killed process leaves writes whole or not at all", "tests/api/test_lifecycle.py::test_a_process_killed_in_the_middle_of_writes_leaves_each_whole_or_not_at_all"),
    ("what has not changed is not sent again", "tests/api/test_replies.py::test_what_has_not_changed_is_not_sent_again"),
    ("answers say how old their catalog may be", "tests/api/test_replies.py::test_answers_say_how_old_the_catalog_may_be"),
    ("every answer has security headers", "tests/api/test_headers.py::test_every_answer_is_taken_for_what_it_says"),
    ("a missing key is challenged", "tests/api/test_problems.py::test_a_missing_key_is_challenged"),
    ("a refusal costs next to nothing, and no kept answer", "tests/api/test_front.py::test_what_would_wait_too_long_is_refused_before_it_is_read_and_what_is_kept_is_not"),
    ("a repeated question is the same to the byte by either way", "tests/api/test_front.py::test_a_kept_answer_is_the_same_by_either_way_and_counted"),
    ("a database that breaks costs writes and never answers", "tests/api/test_catalog_faults.py::test_a_sqlite_that_breaks_costs_writes_and_never_answers"),
    ("a PostgreSQL that is read-only or restarted costs no answer", "tests/api/test_catalog_faults.py::test_a_postgresql_that_is_read_only_or_restarted_costs_writes_and_never_answers"),
    ("a killed import leaves all of it or nothing", "tests/catalog/test_offer_import.py::test_a_process_killed_in_the_middle_of_an_import_leaves_all_of_it_or_nothing"),
    ("migrations run beside the version before", "tests/catalog/test_migrations.py::test_the_version_before_goes_on_writing_beside_this_one"),
    ("migrations run up, down and up again", "tests/catalog/test_migrations.py::test_up_down_and_up_again"),
    ("writes of another replica are heard of at once", "tests/catalog/test_keeper.py::test_writes_of_another_process_are_heard_of_at_once"),
    ("answers survive a dead database", "tests/catalog/test_keeper.py::test_answers_survive_a_dead_database"),
    ("a config that nobody published is read within bounds, or refused by name", "tests/engine/test_mangled_configs.py::test_a_mangled_config_is_read_within_bounds_or_refused_by_name"),
    ("the contract is what is served", "tests/contract/test_openapi.py::test_the_committed_contract_is_what_is_served"),
    ("memory alone needs no times", "tests/questions/test_size.py::test_memory_alone_needs_no_times"),
    ("containers can change and take little", "tests/test_delivery.py::test_a_container_can_change_and_take_little"),
    ("images are pinned by digest", "tests/test_delivery.py::test_images_are_pinned_by_digest"),
    ("a replica that goes costs no answer", "tests/test_delivery.py::test_a_replica_that_goes_costs_no_answer"),
    ("the chart is what Kubernetes reads", "tests/test_delivery.py::test_what_the_chart_says_is_what_kubernetes_reads"),
    ("pods may do little", "tests/test_delivery.py::test_pods_may_do_little"),
    ("the chart keeps replicas, and lets few in and out", "tests/test_delivery.py::test_the_chart_keeps_replicas_and_lets_few_in_and_out"),
    ("the image's own commands are what is rehearsed", "tests/test_delivery.py::test_the_image_s_own_commands_are_what_is_rehearsed"),
    ("a boolean is no number", "tests/api/test_problems.py::test_a_boolean_is_no_number"),
    ("a quantization that cannot be is refused by name", "tests/api/test_pasted_configs.py::test_a_quantization_that_cannot_be_is_refused_by_name"),
    ("a figure or a price out of bounds is refused", "tests/catalog/test_figures.py::test_a_figure_out_of_bounds_is_refused_with_the_bounds"),
    ("a value that PostgreSQL cannot hold is the caller's mistake", "tests/api/test_writes.py::test_a_value_that_postgresql_cannot_hold_is_the_caller_s_mistake"),
    ("writers of one entry do not contradict themselves", "tests/api/test_writes.py::test_simultaneous_writers_of_one_gpu_do_not_contradict_themselves"),
    ("a deleted SQLite is noticed, and its successor too", "tests/api/test_writes.py::test_a_deleted_sqlite_is_noticed_and_its_successor_too"),
    ("compose has no password of its own", "tests/test_delivery.py::test_compose_has_no_password_of_its_own"),
    ("the bill of materials names every package with its hash", "tests/test_delivery.py::test_the_bill_of_materials_names_every_locked_package_with_its_hash"),
)  # fmt: skip
HEAD = """# What the service promises

Written by `make promises`: each promise with the test that fails where it is broken; figures of the last `make overload`,
`make bench` and `make soak` on the machine that wrote this page. `of_peak` is beside the peak right before and after, by the same
generator; `of_bare` is what a bare route takes of the processor for the same bytes, over what the service takes.

| promise | test |
|---|---|
"""


def page() -> str:
    """Return the page."""
    rows = [f"| {promise} | `{test}` |" for promise, test in PROMISES]
    return HEAD + "\n".join([*rows, "", *_overload(), *_growth(), *_soak()]).rstrip() + "\n"


def _overload() -> list[str]:
    if not OVERLOAD.is_file():
        return []
    results = json.loads(OVERLOAD.read_text(encoding="utf-8"))
    names = (
        "what",
        "good_per_s",
        "of_peak",
        "cpu_us",
        "of_bare",
        "good_p50_ms",
        "good_p99_ms",
        "told_per_s",
        "told_p99_ms",
        "no_answer",
    )
    lines = ["## Load", "", f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    lines += [f"| {' | '.join(_cell(row.get(name)) for name in names)} |" for row in results["rows"]]
    memory = results["memory"]
    machine = results.get("machine")
    if machine:
        told = f"{machine['cores']} cores, shared with the generator; {machine['load_average']} processes wanted them before it began."
        lines += ["", told]
    return [*lines, "", f"Resident memory: {memory['before_mb']} MB before, {memory['after_mb']} MB after.", ""]


def _growth() -> list[str]:
    if not GROWTH.is_file():
        return []
    results = json.loads(GROWTH.read_text(encoding="utf-8"))
    small, large = results["rows"]
    lines = [
        f"| {name} | {small[name]:.3g} | {large[name]:.3g} | {results['times'][name]} | {promised} |"
        for name, promised in results["promised"].items()
    ]
    head = f"| processor time | {small['rows']} rows | {large['rows']} rows | times | promised at most |"
    return ["## Growth with the catalog", "", head, "|---|---|---|---|---|", *lines, ""]


def _soak() -> list[str]:
    if not SOAK.is_file():
        return []
    results = json.loads(SOAK.read_text(encoding="utf-8"))
    first, last = results["flat"]["slices"][0], results["flat"]["slices"][-1]
    lines = [f"| {name} | {_cell(first[name])} | {_cell(last[name])} |" for name in first]
    kills = results["kills"]
    told = f"{kills['seconds']:.0f} s: {kills['kills']} kills, {kills['writes']} confirmed writes, {kills['revisions']} revisions answered from."
    return [
        "## Soak",
        "",
        told,
        "",
        f"| {results['flat']['seconds']:.0f} s at half capacity | first tenth | last tenth |",
        "|---|---|---|",
        *lines,
        "",
    ]


def _cell(value: Any) -> str:
    return "" if value is None or value != value else str(value)  # noqa: PLR0124 - not a number


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
