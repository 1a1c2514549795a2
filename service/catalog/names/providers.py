"""What people and other catalogs call providers, without spaces, points and hyphens, and in lower case."""

from collections.abc import Mapping
from typing import Final

PROVIDERS: Final[Mapping[str, str]] = {
    "amazon": "aws", "amazonwebservices": "aws", "amazonaws": "aws", "ec2": "aws", "amazonec2": "aws",
    "google": "gcp", "googlecloud": "gcp", "gcloud": "gcp", "googlecloudplatform": "gcp", "gce": "gcp",
    "microsoft": "azure", "microsoftazure": "azure", "msazure": "azure",
    "oracle": "oci", "oraclecloud": "oci",
    "lambdalabs": "lambda", "lambdacloud": "lambda",
    "datacrunch": "verda", "vastai": "vast", "do": "digitalocean", "runpodio": "runpod",
}  # fmt: skip
