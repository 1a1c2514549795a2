"""How layers are dealt out over pipeline stages.

    stage = floor(layers / stages), and one more for as many stages as layers remain

Source:
    vLLM 0.33 `distributed/utils.py` (`get_pp_indices`).
"""


def pipeline_stages(num_layers: int, pipeline_parallel_size: int) -> list[tuple[int, int]]:
    """Return the first and last layer of each stage, the last one excluded.

    Layers that do not divide evenly go to the middle stages first, sparing the last (which has the
    output head) and then the first.

    >>> pipeline_stages(62, 4)
    [(0, 15), (15, 31), (31, 47), (47, 62)]
    """
    share, remainder = divmod(num_layers, pipeline_parallel_size)
    sizes = [share] * pipeline_parallel_size
    for index in range(2, remainder + 2):
        sizes[-index] += 1
    starts = [sum(sizes[:index]) for index in range(pipeline_parallel_size)]
    return [(start, start + size) for start, size in zip(starts, sizes, strict=True)]
