"""Known vulnerabilities of what is locked: `make audit`. Where the index of advisories cannot be asked, it says so and passes."""

import json
import subprocess
import sys

COMMAND = (
    "pip-audit",
    "--disable-pip",
    "--require-hashes",
    "--progress-spinner",
    "off",
    "-f",
    "json",
    "-r",
    "requirements.lock",
)
RULE = "!" * 80


def main() -> int:
    """Return 1 where a locked package has a known vulnerability."""
    done = subprocess.run(
        [sys.executable, "-m", "pip_audit", *COMMAND[1:]], check=False, capture_output=True, text=True
    )
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        print(f"{RULE}\nNOT AUDITED: the index of advisories was not reached\n{done.stderr.strip()[-500:]}\n{RULE}")
        return 0
    skipped = [package["name"] for package in packages if "skip_reason" in package]
    faulty = [package for package in packages if package.get("vulns")]
    for package in faulty:
        for fault in package["vulns"]:
            print(
                f"{package['name']} {package['version']}: {fault['id']}, mended in {', '.join(fault['fix_versions']) or 'nothing'}"
            )
    if skipped:
        print(f"{RULE}\nNOT AUDITED, the index does not know them: {', '.join(skipped)}\n{RULE}")
    print(f"{len(packages) - len(skipped)} packages audited, {len(faulty)} with known vulnerabilities")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
