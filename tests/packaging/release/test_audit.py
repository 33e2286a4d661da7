"""A known vulnerability counts, unless security/openvex.json states that it does not apply."""

import json
import re
import urllib.request
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from release import ReleaseError
from release.advisories import advisories_affecting, read_advisories, serve
from release.audit import (
    VEX,
    Vulnerability,
    audit,
    merge,
    report_lines,
    vulnerabilities_of,
    without_markers,
)

from tests.paths import ROOT

JUSTIFICATIONS = {
    "component_not_present", "vulnerable_code_not_present", "vulnerable_code_not_in_execute_path",
    "vulnerable_code_cannot_be_controlled_by_adversary", "inline_mitigations_already_exist",
}  # fmt: skip
ADVISORY = {
    "id": "PYSEC-1",
    "affected": [
        {
            "package": {"name": "Some.Package", "ecosystem": "PyPI"},
            "ranges": [
                {
                    "type": "ECOSYSTEM",
                    "events": [{"introduced": "0"}, {"fixed": "1.10"}, {"introduced": "2.0"}],
                }
            ],
            "versions": ["1.99"],
        }
    ],
}


def vex() -> dict[str, Any]:
    return dict(json.loads(VEX.read_text()))


def test_the_openvex_document_has_the_required_fields() -> None:
    document = vex()
    required = {"@context", "@id", "author", "timestamp", "version", "statements"}
    assert required <= document.keys() <= {*required, "last_updated", "role", "tooling"}
    assert document["@context"] == "https://openvex.dev/ns/v0.2.0"
    assert document["version"] >= 1
    assert document["statements"]
    for each in (document["timestamp"], document.get("last_updated", document["timestamp"])):
        assert datetime.fromisoformat(each).tzinfo is not None


def test_each_openvex_statement_names_a_pinned_package_and_a_reason() -> None:
    pins = {line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().split()}
    for statement in vex()["statements"]:
        assert re.fullmatch(r"(CVE|PYSEC|GHSA)-[\w-]+", statement["vulnerability"]["name"])
        (product,) = statement["products"]
        assert product["@id"] == "pkg:pypi/venue-agent"
        names = [each["@id"].removeprefix("pkg:pypi/") for each in product["subcomponents"]]
        assert names
        assert set(names) <= pins, "a statement about a package that is not used any more"
        if statement["status"] == "not_affected":
            # OpenVEX requires either a justification or an impact statement.
            assert ("justification" in statement) != ("impact_statement" in statement)
            assert statement.get("justification", "component_not_present") in JUSTIFICATIONS
        elif statement["status"] == "affected":
            assert statement["action_statement"]
        else:
            assert statement["status"] in {"fixed", "under_investigation"}


def vulnerability(package: str, *names: str) -> Vulnerability:
    return Vulnerability(package, "1.0", names, ("1.1",), ("development.txt",))


def test_a_vulnerability_that_does_not_apply_is_listed_but_not_counted() -> None:
    vulnerabilities = [
        vulnerability("aiohttp", "PYSEC-2022-43059"),
        # The statement about this CVE is about aiohttp only.
        vulnerability("h11", "CVE-2022-33124"),
    ]
    lines, count = report_lines(vulnerabilities, vex())
    assert lines == [
        "aiohttp 1.0: PYSEC-2022-43059: not_affected (component_not_present)",
        "h11 1.0: CVE-2022-33124 (development.txt; fixed in 1.1)",
    ]
    assert count == 1


def test_a_vulnerability_under_investigation_counts() -> None:
    document = vex()
    document["statements"][0]["status"] = "under_investigation"
    _, count = report_lines([vulnerability("aiohttp", "CVE-2022-33124")], document)
    assert count == 1


def test_a_vulnerability_in_two_lists_is_reported_once() -> None:
    report = {
        "dependencies": [
            {
                "name": "Some_Package",
                "version": "1.0",
                "vulns": [{"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": []}],
            }
        ]
    }
    (only,) = merge([*vulnerabilities_of(report, "a.txt"), *vulnerabilities_of(report, "b.txt")])
    assert only == Vulnerability(
        "some-package", "1.0", ("PYSEC-1", "CVE-1"), (), ("a.txt", "b.txt")
    )


def test_packages_for_other_platforms_are_audited() -> None:
    text = without_markers((ROOT / "requirements/package.txt").read_text())
    assert re.search(r"^pywin32==\S+ \\$", text, re.MULTILINE)
    assert " ; " not in text


def test_a_skipped_package_is_an_error() -> None:
    report = {"dependencies": [{"name": "h11", "skip_reason": "not on PyPI"}]}
    with pytest.raises(ReleaseError, match=r"a\.txt: h11 was not audited: not on PyPI"):
        vulnerabilities_of(report, "a.txt")


def test_an_audit_without_advisories_prints_what_to_set() -> None:
    # pip-audit is not installed in the environment of the tests, so it prints no report.
    with pytest.raises(ReleaseError, match="make audit ADVISORIES=FOLDER"):
        audit(ROOT / "requirements/uv.txt", "http://127.0.0.1:9/")


@pytest.mark.parametrize(
    ("version", "is_affected"),
    [("1.9", True), ("1.10", False), ("1.99", True), ("2.0", True), ("2.0rc1", False)],
)
def test_versions_are_compared_as_versions_not_as_text(version: str, is_affected: bool) -> None:
    assert advisories_affecting([ADVISORY], "some-package", version) == (
        [ADVISORY] if is_affected else []
    )


def test_a_folder_of_advisories_is_served_as_the_api_of_osv(tmp_path: Path) -> None:
    (tmp_path / "PYSEC-1.json").write_text(json.dumps(ADVISORY))
    (tmp_path / "PYSEC-2.yaml").write_text(
        "id: PYSEC-2\npublished: 2022-01-01T00:00:00Z\naffected:\n"
        "- package: {name: h11, ecosystem: PyPI}\n  versions: ['1.0']\n"
    )
    with serve(read_advisories(tmp_path)) as address:

        def query(name: str, version: str) -> list[str]:
            body = {"package": {"name": name, "ecosystem": "PyPI"}, "version": version}
            with urllib.request.urlopen(address, json.dumps(body).encode()) as reply:
                return [each["id"] for each in json.load(reply).get("vulns", ())]

        assert query("some-package", "1.0") == ["PYSEC-1"]
        assert query("h11", "1.0") == ["PYSEC-2"]
        assert query("h11", "1.1") == []
        assert query("pip", "1.0") == []
