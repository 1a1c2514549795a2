"""How layers are dealt out over pipeline stages.

    stage = floor(layers / stages), and one more for as many stages as layers remain

Sources:
    vLLM 0.33, SGLang 0.5.5, 0.5.6 and 0.5.23 `distributed/utils.py` (`get_pp_indices`).
"""

from service.engine.inputs import StageRule


def pipeline_stages(num_layers: int, pipeline_parallel_size: int, rule: StageRule = "middle") -> list[tuple[int, int]]:
    """Return the first and last layer of each stage, the last one excluded.

    Layers that do not divide evenly go to the middle stages first, sparing the last (which has the
    output head) and then the first; or to the last ones; or to the very last.

    >>> pipeline_stages(62, 4), pipeline_stages(62, 4, "last")
    ([(0, 15), (15, 31), (31, 47), (47, 62)], [(0, 15), (15, 30), (30, 46), (46, 62)])
    """
    share, remainder = divmod(num_layers, pipeline_parallel_size)
    sizes = [share] * pipeline_parallel_size
    if rule == "rest_last":
        sizes[-1] += remainder
    else:
        first = 2 if rule == "middle" else 1
        for index in range(first, remainder + first):
            sizes[-index] += 1
    starts = [sum(sizes[:index]) for index in range(pipeline_parallel_size)]
    return [(start, start + size) for start, size in zip(starts, sizes, strict=True)]
