"""What people and other catalogs call providers, without spaces, points and hyphens, and in lower case."""

from collections.abc import Iterable, Mapping
from typing import Final

from service.catalog.names.regions import likest_first

PROVIDERS: Final[Mapping[str, str]] = {
    "amazon": "aws", "amazonwebservices": "aws", "amazonaws": "aws", "ec2": "aws", "amazonec2": "aws",
    "google": "gcp", "googlecloud": "gcp", "gcloud": "gcp", "googlecloudplatform": "gcp", "gce": "gcp",
    "microsoft": "azure", "microsoftazure": "azure", "msazure": "azure",
    "oracle": "oci", "oraclecloud": "oci",
    "lambdalabs": "lambda", "lambdacloud": "lambda",
    "datacrunch": "verda", "vastai": "vast", "do": "digitalocean", "runpodio": "runpod",
}  # fmt: skip


def likest_provider_first(asked: str, names: Iterable[str]) -> list[str]:
    """Return providers with that first whose name, or whatever else it is called, is written most like the one asked.

    >>> likest_provider_first("amazn", ["lambda", "azure", "aws"])
    ['aws', 'lambda', 'azure']
    """
    called = {name: name for name in names}
    called |= {other: name for other, name in PROVIDERS.items() if name in called}
    return list(dict.fromkeys(called[each] for each in likest_first(asked, called)))
