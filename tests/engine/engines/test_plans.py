"""Versions change what they are said to change, and keep the rest."""

from dataclasses import asdict

import pytest
from packaging.version import Version

from service.engine.engines.plans import NEWEST, plan_of


def test_the_newest_version_plans_by_the_newest_rules() -> None:
    assert asdict(plan_of(Version("99.0"))) == {**asdict(NEWEST), "version": "99.0"}


# vLLM's release notes: pull request 46549 is in 0.25, prefix caching of hybrids by default in 0.28.
@pytest.mark.parametrize(
    ("name", "since"),
    [
        ("drops_expert_scales", "0.25"),
        ("caches_states", "0.28"),
        ("packs_pages", "0.27"),
        ("kernels_set_blocks", "0.18"),
    ],
)
def test_a_rule_holds_from_its_release_on(name: str, since: str) -> None:
    release = Version(since)
    before = Version(f"0.{release.minor - 1}.9")

    assert (getattr(plan_of(before), name), getattr(plan_of(release), name)) == (False, True)


def test_a_patch_release_plans_like_its_release() -> None:
    one, other = (asdict(plan_of(Version(version))) for version in ("0.26.0", "0.26.1"))

    assert {**one, "version": ""} == {**other, "version": ""}
