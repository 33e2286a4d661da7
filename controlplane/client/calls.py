"""Calls a service over HTTP, repeats refused calls after a wait, and decodes the replies."""

from typing import Any, TypeVar

import httpx2

from agent.presentation.plain_text import plain
from agent.wire.base import Model
from agent.wire.codec import decode
from agent.wire.validation import ValidationError
from controlplane.client.errors import CommandError
from controlplane.client.refusals import UnexpectedReplyError, UnreachableError, refusal
from controlplane.client.waiting import RetryPolicy

REPLY_MAX_BYTES = 16 * 1024 * 1024
HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "User-Agent": "venue-control",
}
Reply = TypeVar("Reply", bound=Model)


class ServiceCalls:
    """Calls one service. Every failure raises ``CommandError`` with a text for users.

    After a reply 429 or 503, the call is repeated after a wait, as long as ``retry_policy``
    permits. A call that must not happen twice is repeated only after 429, because a service that
    replies 429 has done nothing.
    """

    def __init__(
        self,
        http: httpx2.Client,
        retry_policy: RetryPolicy | None = None,
        list_command: str = "keys list",
    ) -> None:
        """``list_command`` lists the API keys. The hints in error messages contain this command."""
        self._http = http
        self._retry_policy = retry_policy or RetryPolicy()
        self._list_command = list_command

    def call(
        self, method: str, path: str, reply: type[Reply], *, is_repeatable: bool, **request: Any
    ) -> Reply:
        """Return the reply of one call. ``request`` are arguments of `httpx2.Client.stream`."""
        waits = self._retry_policy.waits(is_repeatable=is_repeatable)
        while True:
            response, body = self._send(method, path, **request)
            if response.is_success:
                break
            if not waits.wait(response.status_code, response.headers.get("Retry-After")):
                raise refusal(response.status_code, body, self._list_command)
        try:
            return decode(body, reply)
        except ValidationError as error:
            raise UnexpectedReplyError(
                f"the service's reply does not fit the contract: {error}",
                f"Is {self._http.base_url} the address of the service itself?",
            ) from error

    def _send(self, method: str, path: str, **request: Any) -> tuple[httpx2.Response, bytes]:
        try:
            with self._http.stream(method, path.lstrip("/"), **request) as response:
                return response, _read_bounded(response)
        except httpx2.HTTPError as error:
            raise UnreachableError(
                f"cannot reach {self._http.base_url}: {plain(str(error)) or type(error).__name__}",
                "Is the service running? Set its address with --base-url or $VENUE_CONTROL_URL.",
            ) from error


def _read_bounded(response: httpx2.Response) -> bytes:
    body = bytearray()
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > REPLY_MAX_BYTES:
            raise CommandError(f"the service's reply is larger than {REPLY_MAX_BYTES} bytes")
    return bytes(body)
