"""Tests that the operators' documents match the program."""

import re

import pytest

from agent.adapters.storage.history import HistoryRow
from agent.adapters.storage.status_file import BindingStatus, DaemonStatus
from agent.cli.main import VERBS
from agent.config.model import SECTIONS
from agent.doctor.check import CheckResult
from agent.doctor.document import document_of
from agent.doctor.registry import CHECKS
from agent.rules.health import CONDITIONS, Problem
from tests.paths import ROOT

CLI = (ROOT / "docs/cli.md").read_text("utf-8")
TROUBLESHOOTING = (ROOT / "docs/troubleshooting.md").read_text("utf-8")
SOURCES = "\n".join(
    # Joins a string that is written as several literals.
    re.sub(r'"\s*\n\s*f?"', "", path.read_text("utf-8"))
    for path in (ROOT / "agent").rglob("*.py")
)
DOCUMENTS = ("cli", "troubleshooting", "privacy", "configuration")
MESSAGES = re.findall(r'^### "(.+)"$', TROUBLESHOOTING, re.MULTILINE)
CONDITION_ROWS = re.findall(r'^\| "(.+?)" \|', TROUBLESHOOTING, re.MULTILINE)


def test_every_verb_is_documented() -> None:
    for verb in VERBS:
        assert f"\n## {verb}\n" in CLI, verb


def test_every_check_is_documented_in_the_order_of_the_registry() -> None:
    rows = re.findall(r"^\| `([a-z0-9-]+)` \|", CLI.partition("| check |")[2], re.MULTILINE)
    assert rows[: len(CHECKS)] == [check.name for check in CHECKS]


def test_every_json_key_of_doctor_status_and_history_is_documented() -> None:
    result = CheckResult("a", "network", "ok", "fine")
    document = document_of([result], made_at="", duration_s=0)
    keys = {*document, *document["checks"][0], *document["counts"]}
    keys |= {
        name for model in (DaemonStatus, BindingStatus, Problem) for name in model.model_fields
    }
    keys |= set(HistoryRow.__dataclass_fields__)
    for key in keys:
        assert re.search(rf"[`.]{key}`", CLI), key


def test_the_troubleshooting_document_explains_ten_messages() -> None:
    assert len(MESSAGES) == 10


@pytest.mark.parametrize("message", MESSAGES)
def test_each_documented_message_exists_in_the_program(message: str) -> None:
    assert message in SOURCES


@pytest.mark.parametrize("message", MESSAGES)
def test_each_message_has_a_cause_and_a_fix(message: str) -> None:
    section = TROUBLESHOOTING.partition(f'### "{message}"')[2].partition("\n##")[0]
    assert "**Cause**: " in section
    assert "**Fix**: " in section


def test_the_documented_conditions_exist_in_the_program() -> None:
    titles = {condition.title for condition in CONDITIONS.values()}
    assert CONDITION_ROWS
    assert set(CONDITION_ROWS) <= titles


def test_every_configuration_key_in_the_documents_exists() -> None:
    names = {f"{name}.{key}" for name, section in SECTIONS.items() for key in section.model_fields}
    sections = "|".join(SECTIONS)
    documented = {
        (file, name)
        for file in DOCUMENTS
        for name in re.findall(
            rf"`((?:{sections})\.[a-z_]+)(?:`| =)", (ROOT / f"docs/{file}.md").read_text("utf-8")
        )
    }
    assert documented, "the search must find keys"
    assert {(file, name) for file, name in documented if name not in names} == set()


def test_every_link_and_picture_leads_to_a_file() -> None:
    targets = {
        (file, target)
        for file in DOCUMENTS
        for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / f"docs/{file}.md").read_text("utf-8"))
    }
    assert targets, "the search must find links"
    missing = {(file, target) for file, target in targets if not (ROOT / "docs" / target).exists()}
    assert missing == set()


def test_pictures_load_no_external_content() -> None:
    pictures = sorted((ROOT / "docs/images").glob("*.svg"))
    assert pictures
    for picture in pictures:
        text = picture.read_text("utf-8")
        assert "url(http" not in text
        assert "@import" not in text
        assert len(text) < 60_000, picture
