"""What stands on the page of examples beside autoscalers and monitors."""

from typing import Final

from tests.workloads.page import (
    ASKED,
    KEY_SHOWN,
    LARGE,
    QUESTIONS_FILE,
    SERVER,
    SMALL,
    WORKLOAD,
    Manifest,
    Pasted,
    Section,
    Table,
    curl,
    flags,
    url,
)  # fmt: skip

ARGO: Final = Section(
    title="Argo CD",
    words="Its plugin generator asks; one workload without a number refuses the whole list, so that nothing is pruned.",
    parts=(
        (
            "applications",
            Manifest(
                document={
                    "apiVersion": "argoproj.io/v1alpha1",
                    "kind": "ApplicationSet",
                    "metadata": {"name": "inference"},
                    "spec": {
                        "goTemplate": True,
                        "generators": [
                            {
                                "plugin": {
                                    "configMapRef": {"name": "sizer"},
                                    "input": {"parameters": {"workload": WORKLOAD}},
                                    "requeueAfterSeconds": 300,
                                }
                            }
                        ],
                        "template": {
                            "metadata": {"name": "{{ .workload }}"},
                            "spec": {
                                "project": "default",
                                "destination": {"server": "https://kubernetes.default.svc", "namespace": "inference"},
                                "source": {
                                    "repoURL": "https://git.example.com/inference.git",
                                    "path": "charts/vllm",
                                    "helm": {
                                        "parameters": [
                                            {"name": "replicaCount", "value": "{{ .replicas }}"},
                                            {"name": "engineArgs", "value": "{{ .engine_args }}"},
                                        ]
                                    },
                                },
                            },
                        },
                    },
                }
            ),
        ),
        (
            "plugin",
            Manifest(
                document={
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "sizer"},
                    "data": {"token": "$sizer:key", "baseUrl": SERVER, "requestTimeout": "30"},
                }
            ),
        ),
    ),
)

SHEETS: Final = Section(
    title="Spreadsheets",
    words="One number, or a table, by its address alone.",
    parts=(
        (
            "sheets",
            Pasted(
                language="text",
                lines=[
                    f'=IMPORTDATA("{url(f"{ASKED}/recommend", limit=5, format="csv")}")',
                    f'=IMPORTDATA("{url("/catalog/offers", gpu="h100-sxm-80gb", format="csv")}")',
                    f'=WEBSERVICE("{url(f"{ASKED}/size", field="gpus")}")',
                ],
            ),
        ),
    ),
)

TERRAFORM: Final = Section(
    title="Terraform",
    words="A question without an answer fails the plan with its reason.",
    parts=(
        (
            "terraform",
            Pasted(
                language="hcl",
                lines=[
                    f'data "http" "{WORKLOAD}" {{',
                    f'  url = "{url(f"{ASKED}/replicas")}"',
                    "  request_headers = {",
                    '    Accept = "application/json"',
                    "  }",
                    "  lifecycle {",
                    "    postcondition {",
                    "      condition     = self.status_code == 200",
                    "      error_message = jsondecode(self.response_body).detail",
                    "    }",
                    "  }",
                    "}",
                    "",
                    'output "replicas" {',
                    f"  value = jsondecode(data.http.{WORKLOAD}.response_body).replicas",
                    "}",
                ],
            ),
        ),
    ),
)

BATCHES: Final = Section(
    title="Many questions at once",
    words="Answers come in order, each with its own success or problem; with `Accept: application/x-ndjson` as they are "
    "known.",
    parts=(
        ("batch", Pasted(language="bash", lines=[curl(url("/size:batch"), {"questions": [SMALL]})])),
        ("questions", Table(rows=[SMALL, LARGE])),
        (
            "batch_of_rows",
            Pasted(
                language="bash",
                lines=[
                    curl(url("/size:batch"), options=f"-H 'content-type: text/csv' --data-binary @{QUESTIONS_FILE}")
                ],
            ),
        ),
        "A running service may be asked from the command line: a table in a terminal, the plain answer where it is piped.",
        (
            "commands",
            Pasted(
                language="bash",
                lines=[
                    f"sizer --server {SERVER} size {flags(SMALL)}",
                    f"sizer --server {SERVER} batch size {QUESTIONS_FILE} --format csv",
                ],
            ),
        ),
    ),
)

BOARDS: Final = Section(
    title="Grafana, Backstage",
    words="`openapi/grafana` has a datasource and a dashboard for the Infinity plugin, to be provisioned; "
    f"`openapi/catalog-info.yaml` is for Backstage, beside `SIZER_PUBLIC_URL={SERVER}`, which makes the contract's servers "
    "absolute.",
)

TRACED: Final = Section(
    title="OpenTelemetry",
    words="A span for each request, part of its caller's trace (`traceparent`); needs the extra `otel`. Kept answers then "
    "take the long way, too.",
    parts=(("traces", Pasted(language="bash", lines=["export SIZER_OTLP_ENDPOINT=http://collector:4318/v1/traces"])),),
)

PYTHON: Final = Section(
    title="Python",
    words="`service/client.py`, blocking (`Client`) or not (`AsyncClient`); asks again on 429 and 503 alone, when it is told "
    'to. `ask_as(Sizing, "size", ...)` answers with the engine\'s own type (`service.engine.answers.results`).',
    parts=(
        (
            "python",
            Pasted(
                language="python",
                lines=[
                    "from service.client import Client",
                    "",
                    f'with Client("{SERVER}", key="{KEY_SHOWN}") as client:',
                    f'    pods = client.ask_about("{WORKLOAD}", "replicas", request_rate_per_s=38)["replicas"]',
                ],
            ),
        ),
    ),
)

LANGUAGES: Final = Section(
    title="Other languages",
    words="`openapi/openapi.json` has no error of spectral's or redocly's (`make lint-openapi`); generated clients ask "
    "(`tests/contract`).",
    parts=(
        (
            "clients",
            Pasted(
                language="bash",
                lines=[
                    f"openapi-python-client generate --url {url('/openapi.json')}",
                    f"openapi-typescript {url('/openapi.json')} --default-non-nullable false -o sizer.ts",
                ],
            ),
        ),
    ),
)

KEYS: Final = Section(
    title="Keys",
    words="Shown once, hashed at rest. `read` < `write` < `admin`; reads are open unless `SIZER_READS_NEED_KEY=true`.",
    parts=(
        (
            "keys",
            Pasted(
                language="bash",
                lines=[
                    'sizer keys create "keda of production" --scope read --days 365',
                    "sizer keys list",
                    "sizer keys revoke 0123456789ab",
                ],
            ),
        ),
        (
            "Tokens of an OpenID provider are keys as well: signed by it, for `SIZER_OIDC_AUDIENCE`, with `sizer:read`, "
            "`sizer:write` or `sizer:admin` in their `scope`."
        ),
        (
            "tokens",
            Pasted(
                language="bash",
                lines=["export SIZER_OIDC_ISSUER=https://login.example.com SIZER_OIDC_AUDIENCE=sizer"],
            ),
        ),
    ),
)
