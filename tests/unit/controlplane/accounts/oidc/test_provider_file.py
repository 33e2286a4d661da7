"""Tests of the file that configures identity providers, and of the commands that set the sign-in
policy and remove a second factor.
"""

from pathlib import Path
from typing import Any

import pytest

from controlplane.accounts import sign_in_policy
from controlplane.accounts.oidc.providers import ProviderFileError, read_providers
from controlplane.accounts.second_factor import codes
from controlplane.accounts.users import find_user
from controlplane.cli.main import build_parser, main
from controlplane.cli.serve import identity_providers_of
from controlplane.client.errors import UsageError
from controlplane.clock import system_clock
from controlplane.storage.database import Database

VALID_FILE = """
[[provider]]
id = "contoso"
label = "Contoso"
issuer = "https://login.contoso.example"
client_id = "venue"
client_secret_file = "contoso.secret"
domains = ["Contoso.example"]
[[provider.roles]]
organization = "org-0001"
group = "owners"
role = "owner"
[[provider.roles]]
organization = "org-0001"
group = "kiel"
role = "viewer"
locations = ["loc-0007"]
[[provider.roles]]
organization = "org-0001"
group = "bonn"
role = "viewer"
locations = ["loc-0009"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "contoso.secret").write_text("a secret\n")
    path = tmp_path / "providers.toml"
    path.write_text(VALID_FILE)
    return path


def test_the_file_defines_providers_and_roles(file: Path) -> None:
    options = build_parser().parse_args(["serve", "--identity-providers", str(file)])
    (provider,) = identity_providers_of(options.identity_providers)
    assert provider.client_secret == "a secret"
    assert "a secret" not in repr(provider)
    assert provider.is_trusted_for("Ada@CONTOSO.example")
    assert not provider.is_trusted_for("ada@contoso.example.evil.example")
    both = provider.roles_of(["kiel", "bonn", "unknown"])["org-0001"]
    assert (both.role, both.locations) == ("viewer", ("loc-0007", "loc-0009"))
    assert provider.roles_of(["kiel", "owners"])["org-0001"].role == "owner"
    assert provider.roles_of(["kiel", "owners"])["org-0001"].locations == ()
    assert provider.roles_of([]) == {}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("https://login", "http://login", "issuer"),
        ('id = "contoso"', 'id = "../x"', "id"),
        ('["Contoso.example"]', "[]", "domains"),
        ('["Contoso.example"]', '["example"]', "domain"),
        ('role = "owner"', 'role = "root"', "role"),
        ('label = "Contoso"', 'label = "Contoso"\nextra = 1', "extra"),
        ('label = "Contoso"', 'label = "Contoso"\nscopes = ["email"]', "openid"),
        ('"contoso.secret"', '"missing"', "client secret"),
        ("[[provider]]", "[[provider]", "cannot read"),
        (VALID_FILE, VALID_FILE + VALID_FILE, "two providers"),
    ],
)
def test_an_unsafe_or_invalid_file_is_refused(file: Path, old: str, new: str, problem: str) -> None:
    file.write_text(VALID_FILE.replace(old, new, 1))
    with pytest.raises(ProviderFileError, match=problem):
        read_providers(file)
    with pytest.raises(UsageError, match="--identity-providers"):
        identity_providers_of(file)


@pytest.mark.parametrize(("secret", "problem"), [("\n", "is empty"), ("x" * 4097, "longer")])
def test_a_client_secret_of_a_wrong_length_is_refused(
    file: Path, tmp_path: Path, secret: str, problem: str
) -> None:
    (tmp_path / "contoso.secret").write_text(secret)
    with pytest.raises(ProviderFileError, match=problem):
        read_providers(file)


def test_commands_set_the_policy_and_remove_a_second_factor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url, password = str(tmp_path / "service.db"), tmp_path / "password"
    password.write_text("correct horse battery\n")
    monkeypatch.setenv("VENUE_CONTROL_DATABASE", url)
    add = ["users", "add", "ada@example.com", "--role", "owner", "--password-file", str(password)]
    assert main(add) == 0
    assert main(["users", "policy", "--passwords", "refused", "--second-factor", "required"]) == 0
    assert main(["users", "policy", "--passwords", "accepted"]) == 0
    assert main(["users", "policy"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "org-0001: passwords accepted, second factor required"
    assert main(["users", "reset-second-factor", "ada@example.com"]) == 1
    database = Database(url)

    def add_second_factor(session: Any) -> None:
        user = find_user(session, "ada@example.com")
        assert user is not None
        codes.begin(session, user.id, system_clock()).is_confirmed = True

    database.write(add_second_factor)
    assert main(["users", "reset-second-factor", "ada@example.com"]) == 0
    policy = database.read(lambda session: sign_in_policy.policy_of(session, "org-0001"))
    assert policy.requires_second_factor
    database.close()
    assert main(["audit", "--json"]) == 0
    log = capsys.readouterr().out
    assert "second_factor.remove" in log
    assert "sign_in_policy.change" in log
