"""The identity providers with which users can sign in by OpenID Connect, read from a TOML file.

The operator decides for which e-mail domains a provider is trusted, and which role its groups have
in which organization.
"""

import re
import tomllib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import (
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from agent.wire.addresses import has_usable_port, is_loopback_url, is_web_url
from agent.wire.base import Model

ROLES: Final = ("viewer", "manager", "owner")
"""The roles, from the fewest permissions to the most."""
FILE_MAX_BYTES: Final = 65_536
SECRET_MAX: Final = 4096
ENTRA_HOSTS: Final = frozenset(
    {
        "login.microsoftonline.com",
        "login.microsoftonline.us",
        "login.partner.microsoftonline.cn",
        "sts.windows.net",
    }
)
"""The hosts of the issuers of Microsoft Entra ID, in all its clouds."""
GOOGLE_ISSUER: Final = "https://accounts.google.com"
_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_DOMAIN: Final = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+")
Line = Annotated[str, StringConstraints(min_length=1, max_length=256)]


class ProviderFileError(ValueError):
    """The file cannot be used. The message names the cause for the operator."""


class _TomlTable(Model):
    # Pydantic's strict mode would refuse an array for a tuple, and TOML has no tuples.
    model_config = ConfigDict(extra="forbid", strict=False, hide_input_in_errors=True)


class GroupRole(_TomlTable):
    """The role of a group in an organization. An empty ``locations`` means every location."""

    organization: Line
    group: Line
    role: Literal["owner", "manager", "viewer"]
    locations: tuple[Line, ...] = ()


class IdentityProvider(_TomlTable):
    """An identity provider, the domains that it is trusted for, and the roles of its groups.

    Attributes:
        id: part of the path of its redirect URI.
        label: its name on the sign-in page.
        client_secret_file: file with the client secret, relative to the TOML file. Without it, the
            service is a public client.
        client_secret: the content of that file. The TOML file itself must not contain the secret.
        domains: e-mail domains whose addresses the provider may assign to users.
        groups_claim: claim of the ID token or of userinfo with the user's groups.
        scopes: requested scopes. Some providers issue refresh tokens only for ``offline_access``.
    """

    id: str
    label: Line
    issuer: Line
    client_id: Line
    client_secret_file: Path | None = None
    client_secret: str | None = Field(default=None, exclude=True, repr=False)
    domains: tuple[str, ...] = Field(min_length=1)
    groups_claim: Line = "groups"
    scopes: tuple[Line, ...] = ("openid", "email", "profile")
    roles: tuple[GroupRole, ...] = Field(min_length=1)

    @field_validator("id")
    @classmethod
    def _check_id(cls, value: str) -> str:
        if _ID.fullmatch(value) is None:
            raise ValueError(
                "must be 1 to 32 lowercase letters, digits and hyphens, and not begin with a hyphen"
            )
        return value

    @field_validator("issuer")
    @classmethod
    def _check_issuer(cls, value: str) -> str:
        if not is_secure(value) or urlsplit(value).query or urlsplit(value).fragment:
            raise ValueError("must be an https address without query and fragment")
        return value

    @field_validator("domains")
    @classmethod
    def _check_domains(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        domains = tuple(each.lower() for each in values)
        if wrong := [each for each in domains if _DOMAIN.fullmatch(each) is None]:
            raise ValueError(f"{wrong[0]!r} is not a domain such as example.com")
        return domains

    @model_validator(mode="after")
    def _check_scopes(self) -> "IdentityProvider":
        if "openid" not in self.scopes:
            raise ValueError("scopes must contain openid")
        return self

    @property
    def is_entra(self) -> bool:
        """Whether the provider is Microsoft Entra ID."""
        return urlsplit(self.issuer).hostname in ENTRA_HOSTS

    def is_trusted_for(self, email: str) -> bool:
        return email.rpartition("@")[2].lower() in self.domains

    def roles_of(self, groups: Collection[str]) -> dict[str, GroupRole]:
        """Return the roles of a user with these groups, by organization.

        If several groups match in an organization, the role with the most permissions applies. The
        locations of all groups with this role are joined.
        """
        results: dict[str, GroupRole] = {}
        for each in self.roles:
            if each.group not in groups:
                continue
            previous = results.get(each.organization)
            results[each.organization] = (
                each if previous is None else _combine_roles(previous, each)
            )
        return results


def _combine_roles(first: GroupRole, second: GroupRole) -> GroupRole:
    """Return the role with more permissions. Join the locations if the roles are the same."""
    if first.role != second.role:
        return max(first, second, key=lambda each: ROLES.index(each.role))
    has_all = not first.locations or not second.locations
    locations = () if has_all else tuple(sorted({*first.locations, *second.locations}))
    return first.model_copy(update={"locations": locations})


class _File(_TomlTable):
    providers: tuple[IdentityProvider, ...] = Field(alias="provider", min_length=1)


def is_secure(url: str) -> bool:
    """Return whether ``url`` is an https URL, or an http URL with a loopback address."""
    if not is_web_url(url) or not has_usable_port(url) or "@" in urlsplit(url).netloc:
        return False
    return urlsplit(url).scheme == "https" or is_loopback_url(url)


def read_providers(file: Path) -> tuple[IdentityProvider, ...]:
    """Return the providers in a file. Raises ProviderFileError."""
    try:
        with file.open("rb") as stream:
            content = stream.read(FILE_MAX_BYTES + 1)
        if len(content) > FILE_MAX_BYTES:
            raise ProviderFileError(f"{file} is larger than {FILE_MAX_BYTES} bytes")
        providers = _File.model_validate(tomllib.loads(content.decode())).providers
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise ProviderFileError(f"{file}: {field}: {first['msg']}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ProviderFileError(f"cannot read {file}: {reason}") from error
    for name in ("id", "issuer"):
        _require_unique(file, name, (getattr(each, name) for each in providers))
    _require_unique(file, "domain", (domain for each in providers for domain in each.domains))
    return tuple(_with_secret(each, file.parent) for each in providers)


def _require_unique(file: Path, name: str, values: Iterable[str]) -> None:
    known: set[str] = set()
    for each in values:
        if each in known:
            raise ProviderFileError(f"{file}: two providers have the {name} {each}")
        known.add(each)


def _with_secret(provider: IdentityProvider, directory: Path) -> IdentityProvider:
    if provider.client_secret is not None:
        raise ProviderFileError(
            f"{provider.id}: client_secret is not accepted here: use client_secret_file"
        )
    if provider.client_secret_file is None:
        return provider
    path = directory / provider.client_secret_file
    try:
        with path.open(encoding="utf-8") as stream:
            secret = stream.read(SECRET_MAX + 1).strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise ProviderFileError(f"cannot read the client secret {path}: {reason}") from error
    if not secret:
        raise ProviderFileError(f"the client secret {path} is empty")
    if len(secret) > SECRET_MAX:
        raise ProviderFileError(f"the client secret {path} is longer than {SECRET_MAX} characters")
    return provider.model_copy(update={"client_secret": secret})
