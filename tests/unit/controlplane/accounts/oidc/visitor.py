"""A browser that has its own cookie jar and signs in with the identity provider."""

from http.cookies import SimpleCookie

import httpx2

from tests.unit.controlplane.accounts.people import COOKIE, Browser
from tests.unit.controlplane.running_service import RunningService

LOOPBACK = "http://127.0.0.1:8470"


class Visitor(Browser):
    """Follows the redirects of a sign-in. Tests can also call each step separately.

    OpenID Connect requires TLS or a loopback address, so this browser uses a loopback address.
    """

    def __init__(self, service: RunningService, provider: str = "contoso") -> None:
        super().__init__(service)
        self.path = f"/api/auth/oidc/{provider}"
        self.cookies: dict[str, str] = {}

    async def begin(self) -> str:
        """Return the address of the provider to which the service redirects."""
        reply = await self.get(self.path)
        assert reply.status_code == 303, reply.text
        return reply.headers["location"]

    async def consent(self, address: str) -> str:
        """Open the provider's page, which redirects to the service. Return the path and query of
        this redirect.
        """
        async with httpx2.AsyncClient(trust_env=False) as http:
            reply = await http.get(address)
        assert reply.status_code == 302, reply.text
        return reply.headers["location"].removeprefix(LOOPBACK)

    async def finish(self, answer: str) -> httpx2.Response:
        """Follow the redirect of the provider to the service, and store the session token."""
        reply = await self.get(answer)
        self.token = self.cookies.get(COOKIE, "")
        return reply

    async def sign_in_with_provider(self) -> httpx2.Response:
        return await self.finish(await self.consent(await self.begin()))

    async def get(self, path: str) -> httpx2.Response:
        return await self.call("GET", path)

    async def submit(self, path: str, **fields: str) -> httpx2.Response:
        """Submit a form, as a page without scripts does."""
        return await self.call("POST", path, data=fields, headers={"origin": LOOPBACK})

    async def call(self, method: str, path: str, **options: object) -> httpx2.Response:
        headers = dict(options.pop("headers", {}))  # type: ignore[call-overload]
        if self.cookies:
            headers["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        self._http.cookies.clear()
        reply = await self._http.request(method, LOOPBACK + path, headers=headers, **options)  # type: ignore[arg-type]
        self._http.cookies.clear()
        for line in reply.headers.get_list("set-cookie"):
            for name, morsel in SimpleCookie(line).items():
                self.cookies[name] = morsel.value
                if not morsel.value:
                    del self.cookies[name]
        return reply
