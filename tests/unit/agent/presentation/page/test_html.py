"""Tests of a report's page, parsed as a browser parses it: text of a payload must not become an
element or an attribute.
"""

import base64
import hashlib
import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.presentation.page.html import report_page, style_hash
from agent.presentation.plain_text import plain
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.network import NetworkPayload
from tests.fixtures.payloads import (
    HOSTILE_STRINGS,
    application_snapshot,
    bare_report,
    empty_report,
    hostile_application,
    hostile_network,
    large_venue,
    small_venue,
)
from tests.sizes import examples

ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "section", "article"),
    *("figure", "figcaption", "div", "p", "span", "h1", "h2", "h3", "h4", "ul", "li", "strong"),
    *("dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"),
    *("svg", "defs", "symbol", "path", "g", "polygon", "line", "circle", "use", "text"),
}
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "class", "data-label", "title", "role"),
    *("aria-label", "viewbox", "width", "height", "id", "d", "points", "x1", "y1", "x2", "y2"),
    *("cx", "cy", "r", "x", "y", "transform", "href", "tabindex"),
}
VOID_ELEMENTS = frozenset({"meta"})
EVERY_PAYLOAD = (
    small_venue(),
    large_venue(),
    empty_report(),
    bare_report(),
    application_snapshot(),
    hostile_network(),
    hostile_application(),
)


class Page(HTMLParser):
    """The parsed content of a page. Raises an error if an element is not closed correctly."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.links: set[str] = set()
        self.data: list[str] = []
        self.style = ""
        self.policy = ""
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self._read_attributes(dict(attrs))
        if tag not in VOID_ELEMENTS:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self._read_attributes(dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] == ["style"]:
            self.style += data
        else:
            self.data.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def _read_attributes(self, attributes: dict[str, str | None]) -> None:
        self.attributes |= attributes.keys()
        self.links |= {attributes["href"] or ""} if "href" in attributes else set()
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"] or ""
        self.data += [value for name, value in attributes.items() if value and name != "content"]


@pytest.mark.parametrize("payload", EVERY_PAYLOAD)
def test_a_report_page_contains_only_permitted_elements_and_attributes(
    payload: NetworkPayload | ApplicationPayload,
) -> None:
    page = Page(report_page(payload))
    assert page.elements <= ELEMENTS
    assert page.attributes <= ATTRIBUTES
    assert all(link.startswith("#icon-") for link in page.links)


@pytest.mark.parametrize("payload", EVERY_PAYLOAD)
def test_a_report_page_contains_no_control_or_direction_characters(
    payload: NetworkPayload | ApplicationPayload,
) -> None:
    page = report_page(payload)
    actual = {c for c in page if c != "\n" and unicodedata.category(c) in {"Cc", "Cf", "Cs"}}
    assert actual == set()


@pytest.mark.parametrize("payload", [hostile_network(), hostile_application()])
def test_hostile_strings_are_displayed_as_text(
    payload: NetworkPayload | ApplicationPayload,
) -> None:
    text = " ".join(" ".join(Page(report_page(payload)).data).split())
    for hostile in HOSTILE_STRINGS:
        assert plain(hostile) in text


def test_template_syntax_in_reports_is_not_evaluated() -> None:
    assert "{{ 7 * 7 }}" in report_page(hostile_network())


def test_the_content_security_policy_allows_only_the_style_sheet_of_the_page() -> None:
    page = Page(report_page(small_venue()))
    digest = base64.b64encode(hashlib.sha256(page.style.encode()).digest()).decode()
    assert style_hash() == f"'sha256-{digest}'"
    assert page.policy == (
        f"default-src 'none'; style-src {style_hash()}; base-uri 'none'; form-action 'none'"
    )


def test_a_report_page_loads_nothing() -> None:
    page = Page(report_page(large_venue()))
    assert not page.attributes & {"src", "srcset", "style", "action", "data"}
    assert "url(" not in page.style
    assert "@import" not in page.style


def test_printers_come_first_with_their_reasons() -> None:
    page = report_page(small_venue())
    order = [
        page.index(f"<h2>{title}") for title in ("Printers", "Network map", "Hosts", "Limitations")
    ]
    assert order == sorted(order)
    assert "Moved to 192.168.1.61 (same MAC 00:26:ab:90:7e:03)" in page


def test_a_page_of_a_large_venue_folds_less_important_hosts() -> None:
    page = report_page(large_venue(121))
    folded = page.partition("<h2>Hosts")[2].partition("<details>")[2]
    assert "<summary>81 further hosts</summary>" in folded
    assert "<summary>20 more printers, reachable</summary>" in page.partition("<h2>Network")[0]
    assert page.count('<div class="services">') == 121
    assert "<details>" not in report_page(small_venue())


def test_a_host_is_displayed_with_its_model_maker_and_services() -> None:
    text = " ".join(" ".join(Page(report_page(small_venue())).data).split())
    # `Page.data` contains attribute values, too: after the name of the host comes "identity", the
    # class of the next element.
    for displayed in ("screen or kiosk · Chromecast · Seiko Epson", "plays casts (8008)"):
        assert displayed in text.partition("Menu board identity")[2][:100]


def test_a_report_without_a_map_has_no_map_on_its_page() -> None:
    assert "<svg" not in report_page(bare_report())
    assert "<svg" in report_page(small_venue())


def test_the_page_of_a_snapshot_contains_values_and_missing_facts() -> None:
    page = report_page(application_snapshot())
    for displayed in ("58.4 GiB", "permission denied", "/dev/sda needs root", "Kiosk browser"):
        assert displayed in page


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=120))
@settings(max_examples=examples(25))
def test_any_name_is_displayed_as_text(name: str) -> None:
    payload = small_venue()
    assert payload.printers
    printer = payload.printers[0].model_copy(update={"name": name, "id": name, "reason": name})
    page = Page(report_page(payload.model_copy(update={"printers": (printer,)})))
    assert page.elements <= ELEMENTS
    assert page.attributes <= ATTRIBUTES
    assert plain(name) in " ".join(" ".join(page.data).split())
