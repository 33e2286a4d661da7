"""The public facade as the command line speaks it: this service, or any other of the contract."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import httpx2

from agent.presentation.plain_text import plain
from agent.wire import routes
from agent.wire.addresses import is_loopback_url, is_web_url
from agent.wire.base import Message
from agent.wire.codec import decode, encode
from agent.wire.operator_operations import (
    CreateRequestReply,
    CreateRequestRequest,
    Device,
    DeviceDetailReply,
    DeviceDetailRequest,
    ListDevicesReply,
    ListDevicesRequest,
    ReportDetail,
    ReportDetailRequest,
    RevokeReply,
    RevokeRequest,
)
from agent.wire.problem import Problem
from agent.wire.validation import ValidationError
from controlplane.cli.errors import CommandError, UsageError

URL_VARIABLE = "VENUE_CONTROL_URL"
KEY_VARIABLE = "VENUE_CONTROL_API_KEY"
DEFAULT_URL = "http://127.0.0.1:8470"
TIMEOUT_S = 20
REPLY_MAX_BYTES = 16 * 1024 * 1024
PAGES_MAX = 500
KEY_MAX = 4096
DETAIL_MAX = 300
_ADVICE = {
    401: "The API key is unknown or revoked: see `venue-control keys`.",
    403: "The API key lacks the grant or the location for this.",
    429: "The service asks to slow down.",
}

Reply = TypeVar("Reply", bound=Message)


class OperationsClient:
    """The operator's operations. Each raises ``CommandError`` with words for a person."""

    def __init__(self, http: httpx2.Client) -> None:
        self._http = http

    def devices(self) -> tuple[list[Device], bool]:
        """Return all devices, and whether there were more than we are ready to fetch."""
        devices: list[Device] = []
        cursor: str | None = None
        for _ in range(PAGES_MAX):
            page = self._call(
                routes.LIST_DEVICES, ListDevicesRequest(cursor=cursor), ListDevicesReply
            )
            devices += page.devices
            cursor = page.next_cursor
            if cursor is None:
                return devices, False
        return devices, True

    def device(self, body: DeviceDetailRequest) -> DeviceDetailReply:
        return self._call(routes.DEVICE_DETAIL, body, DeviceDetailReply)

    def create_request(self, body: CreateRequestRequest) -> CreateRequestReply:
        return self._call(routes.CREATE_REQUEST, body, CreateRequestReply)

    def report(self, body: ReportDetailRequest) -> ReportDetail:
        return self._call(routes.REPORT_DETAIL, body, ReportDetail)

    def revoke(self, body: RevokeRequest) -> RevokeReply:
        return self._call(routes.REVOKE, body, RevokeReply)

    def ask_own(self, path: str, body: Message, reply: type[Reply]) -> Reply:
        """Call what only this service has, beside the facade."""
        return self._call(path, body, reply)

    def _call(self, path: str, body: Message, reply: type[Reply]) -> Reply:
        content = self._post(path, encode(body))
        try:
            return decode(content, reply)
        except ValidationError as error:
            raise CommandError(f"the service's reply does not fit the contract: {error}") from error

    def _post(self, path: str, content: bytes) -> bytes:
        try:
            with self._http.stream("POST", path.lstrip("/"), content=content) as response:
                body = _read_bounded(response)
        except httpx2.HTTPError as error:
            raise CommandError(
                f"cannot reach {self._http.base_url}: {plain(str(error)) or type(error).__name__}",
                f"Is the service running? --base-url or ${URL_VARIABLE} says where it is.",
            ) from error
        if not response.is_success:
            raise refusal(response.status_code, body)
        return body


@contextmanager
def connect(
    base_url: str | None, api_key_file: str | None, environment: Mapping[str, str]
) -> Iterator[OperationsClient]:
    """Open a client by what the command line and the environment say."""
    url = _checked_url(base_url or environment.get(URL_VARIABLE) or DEFAULT_URL)
    key = read_key(api_key_file, environment)
    headers = {
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
        "Accept": "application/json",
        "User-Agent": "venue-control",
    }
    with httpx2.Client(
        base_url=url, headers=headers, timeout=TIMEOUT_S, trust_env=not is_loopback_url(url)
    ) as http:
        yield OperationsClient(http)


def read_key(path: str | None, environment: Mapping[str, str]) -> str:
    """Return the API key from the file, or else from the environment."""
    if path is None:
        key = environment.get(KEY_VARIABLE, "").strip()
        source = f"${KEY_VARIABLE}"
    else:
        try:
            with Path(path).open(encoding="utf-8") as file:
                key = file.read(KEY_MAX).strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            raise UsageError(f"cannot read the API key from {path}: {reason}") from error
        source = path
    if not key:
        raise UsageError(
            f"there is no API key in {source}",
            f"Give it by --api-key-file FILE or ${KEY_VARIABLE}.",
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(f"what is in {source} is not an API key")
    return key


def refusal(status: int, body: bytes) -> CommandError:
    """Return what the service's refusal says, for a person."""
    try:
        problem = decode(body, Problem)
    except ValidationError:
        problem = Problem()
    said = problem.detail or problem.title or ""
    for name, messages in list((problem.errors or {}).items())[:3]:
        said += f"; {name}: {', '.join(messages)}"
    code = f" {problem.code}" if problem.code else ""
    message = f"the service answered {status}{code}" + (f": {said}" if said else "")
    return CommandError(plain(message)[:DETAIL_MAX], _ADVICE.get(status, ""))


def _checked_url(url: str) -> str:
    if not is_web_url(url):
        raise UsageError(f"{url!r} is not the address of a service: https://host")
    parts = urlsplit(url)
    if parts.scheme == "http" and not is_loopback_url(url):
        raise UsageError(
            f"refusing http to {parts.hostname}: the API key would travel in the clear",
            "Use https, or http only for loopback.",
        )
    return url.rstrip("/") + "/"


def _read_bounded(response: httpx2.Response) -> bytes:
    body = bytearray()
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > REPLY_MAX_BYTES:
            raise CommandError(f"the service's reply is larger than {REPLY_MAX_BYTES} bytes")
    return bytes(body)
