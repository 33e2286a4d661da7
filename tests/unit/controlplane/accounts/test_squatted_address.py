"""Tests of an attack: the owner of one organization creates an account with the email address
of another organization's user, and waits until that organization adds this address.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy.orm import Session

from controlplane.accounts import users
from controlplane.accounts.users import find_user, memberships
from controlplane.cli import users as users_command
from controlplane.cli.main import main
from controlplane.settings import Settings
from tests.unit.controlplane.accounts.people import MEMORY_KIB, PASSES, PASSWORD, Browser, make_user
from tests.unit.controlplane.accounts.test_members import JOIN, MEMBERS
from tests.unit.controlplane.running_service import RunningService

CHIEF = "ceo@a.example"
"""The email address of the attacked user, the chief of org-a. The attacker is an owner of org-b."""
ATTACKER_PASSWORD = "the attacker's password"
Run = Callable[..., int]


@pytest.fixture
def control(service: RunningService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Return a function that runs `venue-control users` on the database of the service.

    The argument ``@`` stands for the path of a file that contains PASSWORD.
    """
    quick = Settings(argon2_memory_kib=MEMORY_KIB, argon2_passes=PASSES)
    monkeypatch.setattr(users_command, "Settings", lambda: quick)
    file = tmp_path / "password"
    file.write_text(PASSWORD)
    url = service.database._engine.url.render_as_string(hide_password=False)

    def run(*words: str) -> int:
        arguments = [str(file) if word == "@" else word for word in words]
        return main(["users", *arguments, "--database", url])

    return run


async def invite(service: RunningService, owner: str, organization_id: str) -> str:
    """Let an owner invite the chief. Return the code of the invitation."""
    make_user(service, owner, organization_id=organization_id)
    browser = Browser(service)
    assert (await browser.sign_in(owner)).status_code == 200
    body = {"email": CHIEF, "role": "viewer", "locations": []}
    path: str = (await browser.post(f"{MEMBERS}/invite", body)).json()["path"]
    return path.rpartition("/")[2]


async def join(service: RunningService, code: str, password: str) -> int:
    body = {"code": code, "name": "Chief", "password": password}
    return (await Browser(service).post(JOIN, body)).status_code


async def squat(service: RunningService) -> None:
    """Create the account of the chief as the attacker does: by an invitation to org-b."""
    code = await invite(service, "eve@b.example", "org-b")
    assert await join(service, code, ATTACKER_PASSWORD) == 200


def organizations(service: RunningService) -> list[str]:
    def work(session: Session) -> list[str]:
        user = find_user(session, CHIEF)
        if user is None:
            return []
        return sorted(each.organization_id for each in memberships(session, user.id))

    return service.database.read(work)


ADD = ("add", CHIEF, "--organization", "org-a", "--role", "owner")


async def test_adding_an_account_of_another_organization_requires_the_option_known(
    service: RunningService, control: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    await squat(service)
    assert await asyncio.to_thread(control, *ADD, "--password-file", "@") == 2
    problem, hint = capsys.readouterr().err.splitlines()
    assert CHIEF in problem
    assert "org-b" in problem
    assert "--known" in hint
    assert "users password" in hint
    assert organizations(service) == ["org-b"]
    assert (await Browser(service).sign_in(CHIEF, ATTACKER_PASSWORD)).json()[
        "organizationId"
    ] == "org-b"


async def test_the_option_known_adds_an_existing_account_and_accepts_no_password(
    service: RunningService, control: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    make_user(service, CHIEF, organization_id="org-b")
    assert await asyncio.to_thread(control, *ADD, "--known", "--password-file", "@") == 2
    assert "--known" in capsys.readouterr().err
    assert organizations(service) == ["org-b"]
    assert await asyncio.to_thread(control, *ADD, "--known") == 0
    assert organizations(service) == ["org-a", "org-b"]


async def test_the_option_known_does_not_create_an_account(
    service: RunningService, control: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await asyncio.to_thread(control, *ADD, "--known") == 2
    assert "Leave out --known" in capsys.readouterr().err
    assert organizations(service) == []


async def test_an_account_that_another_organization_creates_during_the_prompt_is_not_added(
    service: RunningService, control: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The email address has no account when the command starts, but has one after the prompt for
    the password.
    """
    hash_password = users_command.hash_password

    def create_account_during_prompt(*arguments: object) -> str:
        make_user(service, CHIEF, organization_id="org-b")
        return hash_password(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(users_command, "hash_password", create_account_during_prompt)
    assert await asyncio.to_thread(control, *ADD, "--password-file", "@") == 2
    assert organizations(service) == ["org-b"]


async def test_after_a_new_password_the_user_can_accept_the_invitation(
    service: RunningService, control: Run
) -> None:
    """After the operator has set a new password, the attacker cannot use the account."""
    await squat(service)
    attacker = Browser(service)
    await attacker.sign_in(CHIEF, ATTACKER_PASSWORD)
    code = await invite(service, "ada@a.example", "org-a")
    assert await join(service, code, PASSWORD) == 403
    assert organizations(service) == ["org-b"]
    assert await asyncio.to_thread(control, "password", CHIEF, "--password-file", "@") == 0
    assert (await attacker.post("/console/api/profile")).status_code == 401
    assert (await attacker.sign_in(CHIEF, ATTACKER_PASSWORD)).status_code == 401
    assert await join(service, code, ATTACKER_PASSWORD) == 403
    assert await join(service, code, PASSWORD) == 200
    assert organizations(service) == ["org-a", "org-b"]


async def test_the_email_address_is_free_after_the_operator_ends_the_foreign_membership(
    service: RunningService, control: Run
) -> None:
    """The operator ends the only membership of the account. This deletes the account."""
    await squat(service)
    assert await asyncio.to_thread(control, "remove", CHIEF, "--organization", "org-b") == 0
    assert organizations(service) == []
    assert await asyncio.to_thread(control, *ADD, "--password-file", "@") == 0
    assert organizations(service) == ["org-a"]
    assert (await Browser(service).sign_in(CHIEF, ATTACKER_PASSWORD)).status_code == 401
    assert (await Browser(service).sign_in(CHIEF)).status_code == 200


async def test_an_invitation_to_an_existing_account_does_not_set_the_password(
    service: RunningService,
) -> None:
    """The user must enter the password of the account, even if an attacker created the account."""
    await squat(service)
    code = await invite(service, "ada@a.example", "org-a")
    body = {"code": code, "name": "Chief", "password": PASSWORD}
    refused = await Browser(service).post(JOIN, body)
    assert (refused.status_code, refused.json()["code"]) == (403, "wrong_password")
    assert "operator" in refused.json()["detail"]
    assert (await Browser(service).sign_in(CHIEF, PASSWORD)).status_code == 401
    user = service.database.read(lambda session: users.find_user(session, CHIEF))
    assert user is not None
    assert organizations(service) == ["org-b"]
