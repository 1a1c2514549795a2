"""Constants of the roofline for classes that nobody fitted: by the kind of kernels, and by the family of GPUs.

A roofline knows neither how experts' tokens fill a tile nor what routes them: on every generation, prompts of models
with experts are slower by it than those of dense ones. So a class without runs is like the engine's others of its kind.

The efficiencies of a generation are fitted on its measured kernels. Where none were measured they are those of any
GPU, and what its runs show of one kind is what its vendor's libraries reach: of the other kind, and of the family's
other generations, as of the same libraries. Host work is the runtime's, whichever kind its kernels are.

Judged by runs that nothing here is fitted on (vLLM's gpt-oss-120b in 1,024 + 1,024 tokens, time per output token):
    SemiAnalysis InferenceX pull request 1061: one MI300X, 64 to 256 users.
    inferencex.semianalysis.com/compare/gptoss-120b-b200-vs-mi325x: four MI325X, 17 to 60 users.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from service.calibration.fits.priors import SCALES, Key
from service.calibration.fits.serving import ANY, typical
from service.performance.fitted import family_of, has_own_efficiencies
from service.performance.tables import Factors

FEWEST_CLASSES: Final = 3  # of a kind that have a median


def by_kind(factors: Mapping[Key, Factors]) -> dict[Key, Factors]:
    """Return the constants of every engine's kinds, on any GPU and on families without measured kernels.

    Args:
        factors: those of each class of the roofline.
    """
    added: dict[Key, Factors] = {}
    for basis, engine in sorted({key[:2] for key in factors}):
        own = {key: each for key, each in factors.items() if key[:2] == (basis, engine)}
        for kind in sorted({key[4] for key in own}):
            alike = _of_kind(own, kind)
            if len(alike) >= FEWEST_CLASSES:
                added[basis, engine, ANY, ANY, kind] = typical(alike, engine)
                added |= _of_families(own, kind)
    return added


def _of_families(own: Mapping[Key, Factors], kind: str) -> dict[Key, Factors]:
    """Return an engine's constants of one kind on families of GPUs of which it was fitted on some."""
    added: dict[Key, Factors] = {}
    for key in sorted(own, key=lambda key: key[4] == kind):  # what is fitted of the kind itself comes last, and stays
        basis, engine, _, generation, fitted_kind = key
        if not has_own_efficiencies(generation):
            family = (basis, engine, ANY, family_of(generation), kind)
            added[family] = own[key] if fitted_kind == kind else _at_speed(own, key, kind)
    return added


def _at_speed(own: Mapping[Key, Factors], key: Key, kind: str) -> Factors:
    """Return the median of a kind at the speed, and with the host work, that a class of the other kind shows.

    speed = geometric mean over the factors of kernels of (the class's / the median of its kind elsewhere)
    """
    here, engine = own[key], key[1]
    elsewhere = {other: each for other, each in own.items() if family_of(other[3]) != family_of(key[3])}
    beside, like = (typical(_of_kind(elsewhere, each), engine) for each in (key[4], kind))
    ratios = [getattr(here, name) / getattr(beside, name) for name in SCALES]
    speed = float(np.exp(np.mean(np.log(ratios))))
    return replace(here, **{name: speed * getattr(like, name) for name in SCALES})


def _of_kind(own: Mapping[Key, Factors], kind: str) -> dict[Key, Factors]:
    return {key: each for key, each in own.items() if key[4] == kind}
