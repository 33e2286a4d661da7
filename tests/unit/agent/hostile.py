"""Hypothesis strategies for hostile text, and for facts that contain it."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from collectors import contract as facts
from tests.fixtures.payloads import HOSTILE_STRINGS

LONG = ("A" * 4096, "🖨" * 2048, "\u202e" * 4096, "x" * 1023 + "🖨", "\x00" * 4096, "\ud800" * 9)

hostile_text: SearchStrategy[str] = st.one_of(
    st.sampled_from((*HOSTILE_STRINGS, *LONG, "")),
    st.text(st.characters(), max_size=40),
    st.builds(lambda text, n: (text * n)[:4096], st.text(st.characters()), st.integers(1, 500)),
)
maybe_text = st.none() | hostile_text
numbers = st.floats() | st.floats(0, 1e6)


def tuples_of(
    items: SearchStrategy[object], max_size: int = 3
) -> SearchStrategy[tuple[object, ...]]:
    return st.lists(items, max_size=max_size).map(tuple)


failures = st.builds(facts.Failure, step=hostile_text, reason=hostile_text)
source_states = st.builds(
    facts.SourceState,
    state=st.sampled_from(("running", "succeeded", "failed", "unsupported")),
    reason=maybe_text,
)
interfaces = st.builds(
    facts.Interface,
    name=hostile_text,
    addresses=tuples_of(
        st.builds(
            facts.InterfaceAddress,
            address=hostile_text,
            family=st.sampled_from(("ipv4", "ipv6")),
            prefix_length=st.integers(0, 128),
        )
    ),
    gateways=tuples_of(hostile_text),
    mac_address=maybe_text,
)
services = st.builds(
    facts.Service,
    port=st.integers(-1, 70_000),
    source=st.sampled_from(("mdns", "tcp")),
    name=maybe_text,
    type=maybe_text,
    reachable=st.none() | st.booleans(),
)
hosts = st.builds(
    facts.Host,
    address=hostile_text,
    services=tuples_of(services),
    reachability=st.sampled_from(("reachable", "unknown")),
    sources=tuples_of(st.sampled_from(("local", "gateway", "mdns", "tcp")), 6),
    interface_name=maybe_text,
    hostname=maybe_text,
    mac_address=maybe_text,
    latency_ms=st.none() | numbers,
)
endpoints = st.builds(
    facts.Endpoint,
    address=hostile_text,
    host=hostile_text,
    port=st.integers(-1, 70_000) | st.integers(1, 65_535),
    label=hostile_text,
    discovered_by=tuples_of(st.sampled_from(("mdns", "scan")), 4),
    status=st.sampled_from(("reachable", "discovered")),
    model=maybe_text,
    mac_address=maybe_text,
    matched_printer_ids=tuples_of(hostile_text) | st.just(("kitchen",) * 65),
)
printers = st.builds(
    facts.Printer,
    id=hostile_text,
    name=hostile_text,
    transport=st.sampled_from(("network", "serial", "ble", "usb")),
    status=st.sampled_from(("reachable", "unreachable", "unknown")),
    address=maybe_text,
    reason=maybe_text,
    matched_endpoint=maybe_text,
)
network_facts = st.builds(
    facts.NetworkFacts,
    scope=st.sampled_from(("local-network", "device")),
    os_platform=hostile_text,
    os_version=maybe_text,
    started_at=st.just("2026-11-20T19:04:12+00:00") | hostile_text,
    interfaces=tuples_of(interfaces, 2),
    hosts=tuples_of(hosts),
    endpoints=tuples_of(endpoints),
    printers=st.none() | tuples_of(printers),
    interfaces_source=source_states,
    mdns_source=source_states,
    scan_source=source_states,
    unavailable=st.builds(
        facts.Unavailable,
        mac_address=maybe_text,
        interfaces=maybe_text,
        gateway=maybe_text,
        os_version=maybe_text,
    ),
    failures=tuples_of(failures),
    limitations=tuples_of(hostile_text),
    truncated=st.booleans(),
    cancelled=st.booleans(),
)

values = st.booleans() | st.integers() | numbers | hostile_text | tuples_of(hostile_text, 40)
statuses = st.sampled_from(
    ("available", "unsupported", "permission-denied", "not-applicable", "collection-failed")
)
fields = st.builds(
    facts.Field,
    key=hostile_text,
    source=hostile_text,
    status=statuses,
    value=st.none() | values,
    reason=maybe_text,
)
browser_fields = st.builds(
    facts.Field,
    key=st.sampled_from(("browser.online", "browser.languages", "browser.userAgent"))
    | hostile_text,
    source=hostile_text,
    status=statuses,
    value=st.none() | values,
    reason=maybe_text,
)
application_facts = st.builds(
    facts.ApplicationFacts,
    started_at=st.just("2026-11-20T19:04:12+00:00") | hostile_text,
    duration_ms=numbers,
    fields=tuples_of(fields, 5),
    interfaces=tuples_of(
        st.builds(facts.InterfaceFields, id=hostile_text, fields=tuples_of(fields)), 2
    ),
    peripherals=tuples_of(
        st.builds(
            facts.PeripheralFields,
            id=hostile_text,
            kind=st.sampled_from(("bluetooth", "usb")),
            fields=tuples_of(fields, 2),
        ),
        2,
    ),
    browser_fields=tuples_of(browser_fields),
    failures=tuples_of(failures, 2),
    limitations=tuples_of(hostile_text),
    truncated=st.booleans(),
    cancelled=st.booleans(),
)
