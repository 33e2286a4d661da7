"""The network map as a drawing: the gateway in the centre, hosts around it, printers first."""

from collections import Counter
from dataclasses import dataclass
from typing import Final, Literal

from agent.presentation.hosts.evidence import HOST_KINDS, KIND_LABELS, HostKind
from agent.presentation.hosts.rows import HostRow, host_rows
from agent.presentation.humanize import counted
from agent.presentation.network_rows import PrinterRow, printer_rows
from agent.presentation.page.ring_layout import BOX_WIDTH, Layout, Point, lay_out
from agent.presentation.page.text_width import fit, wrap
from agent.presentation.printer_status import STATUS_ORDER
from agent.wire.payloads.network import NetworkPayload

LABELLED_MAX: Final = 60
"""Up to this number of hosts, each host has a label. With more hosts, only important hosts do."""

LINKED_MAX: Final = 24
"""Up to this number of boxes, each box has a line to the centre (see `Diagram.links`)."""
IMPORTANT_MAX: Final = 40
"""Maximum number of labelled hosts, if the network has more than LABELLED_MAX hosts."""
DOTS_MAX: Final = 2000
"""Maximum number of hosts that are drawn as dots. Further hosts are left out."""
NAME_SIZE: Final = 12.5
DETAIL_SIZE: Final = 11.0
"""Font sizes of a label and of the line below it, in pixels, as in `report.css`."""
_TEXT_WIDTH: Final = BOX_WIDTH - 3
_SERVICES_IN_TOOLTIP: Final = 8

Marker = Literal["", "good", "bad"]
NEAREST_FIRST: Final[tuple[HostKind, ...]] = (
    "printer", "watched", "machine", "router", "screen", "server", "network", "camera", "speaker",
    "phone", "home", "lighting", "unknown",
)  # fmt: skip
"""The kinds in the order of their distance from the centre. Hosts with printers of this machine are
the nearest, whatever their kind."""


@dataclass(frozen=True, slots=True)
class Node:
    """A host at a position: a box with a label of one or two lines, or a dot without text.

    ``detail`` is the line below the label: the address, or the kind if the label is the address.
    ``marker`` is the state of this machine's printers at the host; "" if there are none.
    """

    host: HostRow
    position: Point
    label: tuple[str, ...]
    detail: str
    tooltip: str
    marker: Marker


@dataclass(frozen=True, slots=True)
class LegendEntry:
    kind: HostKind
    label: str
    count: int


@dataclass(frozen=True, slots=True)
class Diagram:
    """The drawing of a network map.

    Args:
        description: The text alternative of the drawing.
        missing_printers: Names of network printers that belong to no host of the drawing.
        omitted_count: Number of hosts that are left out because of DOTS_MAX.
    """

    layout: Layout
    centre: Node
    boxes: tuple[Node, ...]
    dots: tuple[Node, ...]
    legend: tuple[LegendEntry, ...]
    description: str
    missing_printers: tuple[str, ...]
    omitted_count: int

    @property
    def has_printers(self) -> bool:
        return any(node.marker for node in (self.centre, *self.boxes, *self.dots))

    @property
    def links(self) -> tuple[Node, ...]:
        """Return the nodes that have a line to the centre.

        In a small network, these are all nodes. In a large network, these are this machine and the
        hosts of its printers.
        """
        if not self.dots and len(self.boxes) <= LINKED_MAX:
            return self.boxes
        return tuple(node for node in self.boxes if node.marker or node.host.kind == "machine")


def network_diagram(payload: NetworkPayload) -> Diagram | None:
    """Return the drawing of the payload's network map; None if it has no hosts."""
    host_count = len(payload.network_map.hosts) if payload.network_map else 0
    hosts = host_rows(payload)[:host_count]
    if not hosts:
        return None
    # Long names are shortened, so two printers can have the same name: the worse one is kept.
    worst_last = sorted(
        printer_rows(payload), key=lambda row: STATUS_ORDER.index(row.status), reverse=True
    )
    printers = {row.name: row for row in worst_last}
    centre, around = _centre_and_others(hosts)
    sorted_rows = sorted(around, key=lambda row: (not row.printers, NEAREST_FIRST.index(row.kind)))
    labelled_count = _labelled_count(sorted_rows)
    dots = sorted_rows[labelled_count : labelled_count + DOTS_MAX]
    layout = lay_out(labelled_count, len(dots))
    return Diagram(
        layout=layout,
        centre=_node(centre, Point(0.0, 0.0), printers),
        boxes=tuple(
            _node(row, position, printers)
            for row, position in zip(sorted_rows[:labelled_count], layout.boxes, strict=True)
        ),
        dots=tuple(
            _node(row, position, printers, is_dot=True)
            for row, position in zip(dots, layout.dots, strict=True)
        ),
        legend=_legend(hosts),
        description=_description(hosts),
        missing_printers=_missing_printers(hosts, printers),
        omitted_count=len(sorted_rows) - labelled_count - len(dots),
    )


def _centre_and_others(hosts: tuple[HostRow, ...]) -> tuple[HostRow, list[HostRow]]:
    """Use the first gateway as the centre, or else this machine, or else the first host."""
    centre = next(
        (row for kind in ("router", "machine") for row in hosts if row.kind == kind), hosts[0]
    )
    return centre, [row for row in hosts if row is not centre]


def _labelled_count(sorted_rows: list[HostRow]) -> int:
    """Return how many hosts at the start of ``sorted_rows`` have a label."""
    if len(sorted_rows) <= LABELLED_MAX:
        return len(sorted_rows)
    important_count = sum(
        bool(row.printers) or row.kind in {"printer", "watched", "machine", "router"}
        for row in sorted_rows
    )
    return min(important_count, IMPORTANT_MAX)


def _node(
    row: HostRow, position: Point, printers: dict[str, PrinterRow], *, is_dot: bool = False
) -> Node:
    return Node(
        host=row,
        position=position,
        label=() if is_dot else wrap(_label(row), _TEXT_WIDTH, NAME_SIZE),
        detail="" if is_dot else fit(_detail(row), _TEXT_WIDTH, DETAIL_SIZE, keep_end=6),
        tooltip=_tooltip(row),
        marker=_marker(row, printers),
    )


def _label(row: HostRow) -> str:
    if row.printers:
        more = len(row.printers) - 1
        return f"{row.printers[0]} +{more}" if more else row.printers[0]
    if row.watched_kind:
        return row.name
    is_domain_name = "." in row.name and " " not in row.name
    name = row.name.partition(".")[0] if is_domain_name else row.name
    return name or row.model or row.known_maker or row.address


def _detail(row: HostRow) -> str:
    if _label(row) != row.address:
        return row.address
    return "" if row.kind == "unknown" else KIND_LABELS[row.kind]


def _marker(row: HostRow, printers: dict[str, PrinterRow]) -> Marker:
    if not row.printers:
        return ""
    statuses = (printers[name].status for name in row.printers if name in printers)
    worst = min(statuses, key=STATUS_ORDER.index, default="reachable")
    return "good" if worst == "reachable" else "bad"


def _tooltip(row: HostRow) -> str:
    """Return all facts about a host."""
    services = row.services[:_SERVICES_IN_TOOLTIP]
    omitted_count = len(row.services) - len(services)
    facts = (
        row.name,
        row.address,
        row.kind_label,
        row.model,
        row.maker,
        row.mac_address,
        row.latency,
        f"printers: {', '.join(row.printers)}" if row.printers else "",
        ", ".join(services) + (f" and {omitted_count} more" if omitted_count else ""),
    )
    return " · ".join(fact for fact in facts if fact)


def _legend(hosts: tuple[HostRow, ...]) -> tuple[LegendEntry, ...]:
    counts = Counter(row.kind for row in hosts)
    return tuple(
        LegendEntry(kind, KIND_LABELS[kind], counts[kind]) for kind in HOST_KINDS if counts[kind]
    )


def _description(hosts: tuple[HostRow, ...]) -> str:
    counts = ", ".join(f"{entry.count} {entry.label}" for entry in _legend(hosts))
    return f"Network map of {counted(len(hosts), 'host')}: {counts}"


def _missing_printers(
    hosts: tuple[HostRow, ...], printers: dict[str, PrinterRow]
) -> tuple[str, ...]:
    drawn_printers = {name for row in hosts for name in row.printers}
    network_printers = (row.name for row in printers.values() if row.transport == "network")
    return tuple(name for name in network_printers if name not in drawn_printers)
