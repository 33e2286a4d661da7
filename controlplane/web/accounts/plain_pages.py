"""Pages without scripts. Other sites cannot frame them, and caches do not store them."""

from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

from controlplane.operation.errors import Refusal

if TYPE_CHECKING:
    from jinja2 import Template

POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src data:; form-action {forms}; "
    "base-uri 'none'; frame-ancestors 'none'"
)


def render(
    template: str,
    *,
    forms: str = "'self'",
    refusal: Refusal | None = None,
    **values: Any,
) -> Response:
    """Return a page.

    Args:
        forms: the targets of its forms, as sources of the Content Security Policy.
        refusal: the refusal that the page shows. The page gets its status and headers.
        values: variables of the template.
    """
    headers = {
        **({} if refusal is None else refusal.headers),
        "Content-Security-Policy": POLICY.format(forms=forms),
        "X-Frame-Options": "DENY",
        # With the policy no-referrer, browsers would send our own form with ``Origin: null``.
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
    page = _template(template).render(**values)
    status = HTTPStatus.OK if refusal is None else refusal.status
    return Response(page, status, headers, "text/html")


@cache
def _template(name: str) -> "Template":
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    def load(name: str) -> str:
        return (files("controlplane.console") / name).read_text(encoding="utf-8")

    environment = Environment(
        loader=FunctionLoader(load), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template(name)
