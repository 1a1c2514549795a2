"""Who is inside an engine, and who is sent back."""

from service.engine.time.batching import BlockPool, SchedulerSettings
from service.engine.time.running import Run, Running
from service.engine.time.traffic import Request

POOL = BlockPool(num_blocks=20, tokens=(16.0, 1_048_576.0), blocks=(1.0, 65_536.0))
SETTINGS = SchedulerSettings(max_num_batched_tokens=8_192, max_num_seqs=8)
REQUEST = Request(input_tokens=100, output_tokens=100)


def running(prompts: int) -> tuple[Running, list[Run]]:
    inside = Running(POOL, SETTINGS, (REQUEST,))
    runs = [
        Run(index=index, arrival_s=0.0, prompt_tokens=100, steps_left=100, output_tokens=100, cached_tokens=0)
        for index in range(prompts)
    ]
    for run in runs:
        inside.start_decoding(run)
    return inside, runs


def test_blocks_follow_the_mean_length_of_those_who_decode() -> None:
    inside, _ = running(2)

    assert inside.blocks_in_use() == 2 * 101 / 16
    assert inside.blocks_in_use(27) == 2 * 128 / 16


def test_steps_end_with_the_room_for_them() -> None:
    inside, _ = running(2)

    assert inside.steps_to_next_finish() == 99
    # 2 x (101 + n) tokens fit 20 blocks of 16 until n = 59.
    assert inside.steps_with_room(99) == 59
    assert inside.steps_with_room(1) == 1


def test_the_latest_is_sent_back_to_compute_everything_again() -> None:
    inside, runs = running(3)
    inside.step_index = 10
    inside.context_sum += 30  # ten tokens each

    inside.make_room()

    assert list(inside.waiting) == [runs[2]]
    assert (runs[2].prompt_tokens, runs[2].steps_left, inside.preemptions) == (111, 89, 1)
    assert inside.num_decoding == 2


def test_those_who_made_their_last_token_leave() -> None:
    inside, runs = running(2)
    inside.step_index = 99
    inside.context_sum += 2 * 99

    assert inside.finished() == runs
    assert (inside.num_decoding, inside.context_sum) == (0, 0)
