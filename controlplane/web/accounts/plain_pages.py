"""Pages without scripts. Other sites cannot frame them, and caches do not store them."""

from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

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
    status: int = HTTPStatus.OK,
    headers: Mapping[str, str] | None = None,
    **values: Any,
) -> Response:
    """Return a page.

    Args:
        forms: the targets of its forms, as sources of the Content Security Policy.
        values: variables of the template.
    """
    fixed_headers = {
        "Content-Security-Policy": POLICY.format(forms=forms),
        "X-Frame-Options": "DENY",
        # With the policy no-referrer, browsers would send our own form with ``Origin: null``.
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
    page = _template(template).render(**values)
    return Response(page, status, {**(headers or {}), **fixed_headers}, "text/html")


@cache
def _template(name: str) -> "Template":
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    def load(name: str) -> str:
        return (files("controlplane.console") / name).read_text(encoding="utf-8")

    environment = Environment(
        loader=FunctionLoader(load), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template(name)
