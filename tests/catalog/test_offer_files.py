"""Price lists in own columns, gpuhunt's and SkyPilot's become offers, or are refused by line."""

from datetime import date
from pathlib import Path

import pytest

from service.api.lists import offer_row
from service.catalog.offer_files import PriceList, Stated, read_price_list
from service.catalog.snapshot import Snapshot
from service.questions.formats import table

OWN = """provider,instance_type,region,gpu,gpu_count,usd_per_hour,tier,purchase,commitment_months,as_of,source
lambda,gpu_2x_h100_sxm5,us,H100,2,6.38,,,,2026-11-01,https://lambda.ai/pricing
aws,p5.48xlarge,us-east-1,h100-sxm-80gb,8,31.5,secure,reserved,12,2026-11-02,https://aws.amazon.com/ec2/pricing
vast,made-up,any,rtx-4090,1,0.4,community,,,2026-11-02,https://vast.ai/pricing
"""
# The columns of gpuhunt's v2 files; a line without a GPU is of a machine that has none.
GPUHUNT = """instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,gpu_vendor,flags,cpu_arch,provider_data
p4d.24xlarge,us-east-1,21.957642,96,1152.0,8,A100,40.0,False,,nvidia,,x86,{}
p4de.24xlarge,us-east-1,11.5,96,1152.0,8,A100,80.0,True,,nvidia,,x86,{}
m5.large,us-east-1,0.096,2,8.0,0,,,False,,,,x86,{}
"""
SKYPILOT = """InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,SpotPrice
p5.48xlarge,192.0,2048.0,H100,8.0,,us-west-2,us-west-2a,55.04,14.9
p5.48xlarge,192.0,2048.0,H100,8.0,,us-west-2,us-west-2b,55.04,13.1
m5.large,2.0,8.0,,,,us-west-2,us-west-2a,0.096,0.04
"""

# The columns of SkyPilot's own file for Lambda (catalogs/v7/lambda/vms.csv).
LAMBDA = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice\n"


def read(
    folder: Path, text: str, catalog: Snapshot, name: str = "aws.csv", *, skip: bool = False, as_of: bool = True
) -> PriceList:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    day = date(2026, 11, 5)
    dated = as_of and "as_of" not in text.lower().replace(" ", "_")
    stated = Stated(provider=None, as_of=day if dated else None, checked_on=day, skip_unknown_gpus=skip)
    return read_price_list(file, catalog, stated)


def test_own_columns_state_everything(tmp_path: Path, catalog: Snapshot) -> None:
    listed = read(tmp_path, OWN, catalog, as_of=False)

    assert listed.faults == ()
    first, reserved, community = listed.offers
    assert (first.provider, first.gpu, first.gpu_count, first.usd_per_hour) == ("lambda", "h100-sxm-80gb", 2, 6.38)
    assert (first.tier, first.purchase, first.as_of) == ("secure", "on-demand", date(2026, 11, 1))
    assert (reserved.purchase, reserved.commitment_months) == ("reserved", 12)
    assert (community.tier, community.gpu) == ("community", "rtx-4090")


def test_own_columns_are_read_as_sheets_save_them(tmp_path: Path, catalog: Snapshot) -> None:
    plain = read(tmp_path, OWN, catalog)
    heading, lines = OWN.split("\n", 1)
    sheet = f"{heading.replace('_', ' ').upper()}\n{lines}".replace(",", ";")

    assert plain.offers
    assert read(tmp_path, sheet, catalog) == plain
    assert read(tmp_path, sheet.replace(";", "\t"), catalog) == plain
    assert read(tmp_path, sheet.replace("6.38", "6,38").replace("31.5", "31,5"), catalog) == plain


def test_gpuhunt_tells_a_gpu_by_its_name_and_memory(tmp_path: Path, catalog: Snapshot) -> None:
    listed = read(tmp_path, GPUHUNT, catalog)

    assert listed.faults == ()
    assert [(offer.gpu, offer.purchase, offer.provider) for offer in listed.offers] == [
        ("a100-sxm-40gb", "on-demand", "aws"),
        ("a100-sxm-80gb", "spot", "aws"),
    ]
    assert {offer.source.url for offer in listed.offers} == {"https://github.com/dstackai/gpuhunt"}


def test_gpuhunt_s_names_of_forms_are_read(tmp_path: Path, catalog: Snapshot) -> None:
    """`KNOWN_NVIDIA_GPUS` of gpuhunt 0.1.34 has the form of a board in its name, without a space."""
    head, line, *_ = GPUHUNT.splitlines()
    named = [("H100NVL", "94.0"), ("H200NVL", "141.0"), ("RTXPRO6000", "96.0"), ("A6000", "48.0"), ("L40S", "48.0")]
    lines = [
        line.replace("p4d.24xlarge", f"box-{index}").replace("A100,40.0", f"{name},{memory}")
        for index, (name, memory) in enumerate(named)
    ]
    listed = read(tmp_path, "\n".join((head, *lines)), catalog)

    assert listed.faults == ()
    assert [offer.gpu for offer in listed.offers][:2] == ["h100-nvl-94gb", "h200-nvl-141gb"]
    assert listed.offers[-1].gpu == "l40s"


def test_skypilot_states_both_purchases_and_its_cheapest_zone_counts(tmp_path: Path, catalog: Snapshot) -> None:
    listed = read(tmp_path, SKYPILOT, catalog, "aws/vms.csv")

    assert listed.faults == ()
    assert [(offer.purchase, offer.usd_per_hour, offer.region) for offer in listed.offers] == [
        ("on-demand", 55.04, "us-west-2"),
        ("spot", 13.1, "us-west-2"),
    ]


def test_skypilot_means_forty_gigabytes_by_a_bare_a100(tmp_path: Path, catalog: Snapshot) -> None:
    info = "\"{'Gpus': [{'Name': 'A100', 'MemoryInfo': {'SizeInMiB': 81920}}]}\""
    bare = "gpu_8x_a100,A100,8.0,124.0,1800.0,10.32,us-east-1,,\n"
    stated = f"gpu_8x_a100_80gb,A100-80GB,8.0,240.0,1800.0,14.32,us-east-1,{info},\n"
    listed = read(tmp_path, LAMBDA + bare + stated, catalog, "lambda/vms.csv")

    assert listed.faults == ()
    assert [offer.gpu for offer in listed.offers] == ["a100-sxm-40gb", "a100-sxm-80gb"]
    assert {offer.provider for offer in listed.offers} == {"lambda"}


def test_what_the_catalog_sells_already_keeps_its_id(tmp_path: Path, catalog: Snapshot) -> None:
    text = SKYPILOT.replace("us-west-2", "us-east-1")
    listed = read(tmp_path, text, catalog, "aws/vms.csv")

    assert listed.offers[0].id == "aws-p5.48xlarge-us-east-1"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (OWN.replace("H100", "H-9000"), "line 2: the catalog has no GPU 'H-9000'"),
        (OWN.replace(",6.38,", ",-6.38,"), "line 2: usd_per_hour: "),
        (OWN.replace(",6.38,", ",dear,"), "line 2: 'dear' is no number"),
        (
            OWN.replace(",6.38,", ",$6.38,"),
            "line 2: '$6.38' is no number; accepted: 20.5 or 20,5, without a currency's",
        ),
        (OWN.replace("community", "shared"), "line 4: tier: "),
        (OWN.replace("2026-11-01", "yesterday"), "line 2: as_of: "),
        (OWN.replace("commitment_months", "months"), "line 2: unknown columns: months"),
        (OWN + OWN.splitlines()[1].replace("6.38", "7") + "\n", "line 5: lambda-gpu_2x_h100_sxm5"),
        (OWN.replace("H100", "x" * 5_000), f"line 2: the catalog has no GPU '{'x' * 60}'"),
        (GPUHUNT.replace(",x86,", ",x86,,"), "line 2: more cells than columns"),
        (GPUHUNT.partition(",True")[0], "line 3: the line breaks off before spot; accepted: a cell for each column"),
        (SKYPILOT.rpartition(",")[0], f"line {len(SKYPILOT.splitlines())}: the line breaks off before SpotPrice; "),
        (OWN.replace("tier", "usd_per_hour"), "columns that stand twice: usd_per_hour"),
        ("a,b\n1,2\n", "unknown columns; accepted: own: "),
        ("", "unknown columns; accepted: own: "),
        (OWN.splitlines()[0], "no lines below the names of columns"),
        (OWN.replace(",source", ""), "missing columns: source"),
        (GPUHUNT.replace("gpu_memory", "memory_gb"), "missing columns of gpuhunt's: gpu_memory"),
        (OWN.replace("/pricing", "/pricing,more"), "line 2: more cells than columns"),
        (
            OWN.replace("reserved", "ondemand"),
            "line 3: purchase: 'ondemand' is none; accepted: on-demand, reserved, spot",
        ),
        (OWN.replace("reserved", "spot"), "line 3: commitment_months: spot binds for none"),
        (OWN.replace("2026-11-01", "2026-11-07"), "line 2: as_of: 2026-11-07 is yet to come"),
    ],
)
def test_a_fault_names_its_line(tmp_path: Path, catalog: Snapshot, text: str, fault: str) -> None:
    told = read(tmp_path, text, catalog).faults[0]

    assert told.startswith(fault)


def test_a_file_without_dates_needs_one(tmp_path: Path, catalog: Snapshot) -> None:
    assert read(tmp_path, GPUHUNT, catalog, as_of=False).faults == ("gpuhunt files state no date; state --as-of",)


@pytest.mark.parametrize(("text", "name"), [(GPUHUNT, "aws.csv"), (SKYPILOT, "aws/vms.csv")])
def test_a_file_s_date_has_come(tmp_path: Path, catalog: Snapshot, text: str, name: str) -> None:
    read(tmp_path, text, catalog, name)  # writes it
    stated = Stated(provider=None, as_of=date(2026, 12, 24), checked_on=date(2026, 11, 5))

    assert read_price_list(tmp_path / name, catalog, stated).faults == (
        "--as-of: 2026-12-24 is yet to come; accepted: a day up to 2026-11-05",
    )


@pytest.mark.parametrize(
    ("provider", "as_of", "option"), [("aws", None, "--provider"), (None, date(2026, 11, 4), "--as-of")]
)
def test_own_columns_are_not_stated_beside_the_file_as_well(
    tmp_path: Path, catalog: Snapshot, provider: str | None, as_of: date | None, option: str
) -> None:
    file = tmp_path / "aws.csv"
    file.write_text(OWN, encoding="utf-8")

    listed = read_price_list(file, catalog, Stated(provider=provider, as_of=as_of, checked_on=date(2026, 11, 5)))

    assert listed.offers == ()
    (fault,) = listed.faults
    assert fault.startswith(f"{option}: ")
    assert fault.endswith(f"; leave {option} out")


def test_gpus_that_nobody_knows_are_skipped_only_when_asked(tmp_path: Path, catalog: Snapshot) -> None:
    strange = GPUHUNT.replace("A100,80.0", "K520,4.0")

    assert read(tmp_path, strange, catalog).faults == ("line 3: the catalog has no GPU 'K520' with 4 GB",)
    skipped = read(tmp_path, strange, catalog, skip=True)
    assert (len(skipped.offers), skipped.skipped_gpus) == (1, ("'K520' with 4 GB",))


def test_runpod_s_lines_tell_pcie_from_sxm_and_whose_servers(tmp_path: Path, catalog: Snapshot) -> None:
    """Lines of SkyPilot's own file for RunPod (catalogs/v8/runpod/vms.csv), whose memory is in GB whatever it is called."""
    head = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Region,SpotPrice,Price,AvailabilityZone,GpuInfo\n"
    info = (
        "\"{'Gpus': [{'Name': 'A100 %s', 'Manufacturer': 'Nvidia', 'Count': 1, 'MemoryInfo': {'SizeInMiB': 80}}], "
        "'TotalGpuMemoryInMiB': 80}\""
    )
    lines = (
        f"1x_A100-80GB_SECURE,A100-80GB,1.0,8.0,117.0,IN,1.39,1.39,AP-IN-1,{info % 'PCIe'}\n"
        f"1x_A100-80GB-SXM_COMMUNITY,A100-80GB-SXM,1.0,8.0,117.0,US,,1.29,US,{info % 'SXM'}\n"
        "cpu5m-8-64,,,8.0,64.0,US,,0.52,US-WA-1,\n"
    )
    listed = read(tmp_path, head + lines, catalog, "runpod/vms.csv")

    assert listed.faults == ()
    assert [(offer.gpu, offer.tier, offer.purchase, offer.usd_per_hour) for offer in listed.offers] == [
        ("a100-pcie-80gb", "secure", "on-demand", 1.39),
        ("a100-pcie-80gb", "secure", "spot", 1.39),
        ("a100-sxm-80gb", "community", "on-demand", 1.29),
    ]


def test_what_the_catalog_exports_is_what_it_imports(tmp_path: Path, catalog: Snapshot) -> None:
    """A buyer edits a price in the sheet that `/catalog/offers?format=csv` is, and takes it in again."""
    exported = tuple(catalog.offer_entries.values())
    file = tmp_path / "offers.csv"
    file.write_text(table([offer_row(offer) for offer in exported]), encoding="utf-8")

    listed = read_price_list(file, catalog, Stated(provider=None, as_of=None, checked_on=date(2027, 1, 1)))

    assert listed.faults == ()
    assert listed.offers == exported


def test_a_line_says_when_its_source_was_looked_at(tmp_path: Path, catalog: Snapshot) -> None:
    dated = OWN.replace("as_of,source", "as_of,source,checked_on").replace("pricing\n", "pricing,2026-11-03\n")
    first = read(tmp_path, dated, catalog).offers[0]

    assert first.source.checked_on == date(2026, 11, 3)
    assert read(tmp_path, dated.replace("-03\n", "-09\n"), catalog).faults[0] == (
        "line 2: checked_on: 2026-11-09 is yet to come; accepted: a day up to 2026-11-05"
    )
