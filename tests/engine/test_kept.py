"""What is kept, and what goes first."""

from concurrent.futures import ThreadPoolExecutor

from service.engine.kept import Kept


def test_the_value_not_asked_for_the_longest_goes_first_and_alone() -> None:
    kept: Kept[int] = Kept(2)
    for name in ("a", "b"):
        kept.put(name, 1)

    kept.get("a")
    kept.put("c", 3)

    assert [kept.get(name) for name in ("a", "b", "c")] == [1, None, 3]
    assert len(kept) == 2


def test_a_value_is_made_once() -> None:
    kept: Kept[int | None] = Kept(8)
    made: list[str] = []

    def make() -> None:
        made.append("made")

    assert [kept.get_or("key", make) for _ in range(3)] == [None, None, None]
    assert made == ["made"]


def test_threads_may_share_it() -> None:
    kept: Kept[int] = Kept(16)

    def ask(number: int) -> int:
        return kept.get_or(number % 40, lambda: number % 40)

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(ask, range(4_000)))

    assert answers == [number % 40 for number in range(4_000)]
    assert len(kept) == 16
