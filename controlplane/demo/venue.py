"""The venue that the demo simulates: its LAN, the print queues of its till, and their problems.

The MAC addresses are invented. They begin with the prefixes of real makers, so that reports show
the makers.
"""

from dataclasses import dataclass
from typing import Final

from controlplane.demo.lan.plan import IppPrinter, LanHost, LanPlan, LanService

UUIDS: Final = {
    "Bar": "c1b5f0a2-4f1e-4c1b-9a53-001162a0b061",
    "Office": "e3248000-80ce-11db-8000-30055ca1c260",
}
_RAW_PRINTING_TYPE: Final = "_pdl-datastream._tcp"


@dataclass(frozen=True, slots=True)
class Queue:
    """A print queue of the till. ``job_age_s`` is the age of its job, or 0 without a job."""

    name: str
    info: str
    uri: str
    model: str
    job_age_s: int = 0
    is_stopped: bool = False


def _host(
    number: int, mac: str, hostname: str, ports: tuple[int, ...], title: str, *services: LanService
) -> LanHost:
    return LanHost(
        f"192.168.77.{number}", mac, ports, latency_ms=1.5,
        hostname=hostname, title=title, services=services,
    )  # fmt: skip


def _printer(number: int, mac: str, model: str, name: str, *reasons: str) -> LanHost:
    uuid = UUIDS[name]
    txt = (f"ty={model}", "rp=ipp/print", f"UUID={uuid}")
    descriptions = (
        f"printer-uuid=urn:uuid:{uuid}",
        f"printer-make-and-model={model}",
        "printer-state=3",
    )
    states = (f"printer-state-reasons={reason}" for reason in reasons or ("none",))
    printer = IppPrinter("/ipp/print", (*descriptions, *states))
    return LanHost(
        f"192.168.77.{number}", mac, (80, 515, 631, 9100), latency_ms=4.0, jitter_ms=3.0,
        hostname=name.lower(), title=model, ipp=(printer,),
        services=(
            LanService(name, "_ipp._tcp", 631, txt),
            LanService(name, _RAW_PRINTING_TYPE, 9100, txt[:1]),
        ),
    )  # fmt: skip


VENUE: Final = LanPlan(
    subnet="192.168.77.0/24",
    agent_address="192.168.77.20",
    gateway="192.168.77.1",
    hosts=(
        _host(1, "3c:a6:2f:10:00:01", "fritz", (53, 80, 443), "FRITZ!Box 7590"),
        _host(
            21, "f8:b1:56:10:00:21", "till-2", (139, 445), "",
            LanService("till-2", "_smb._tcp", 445),
        ),
        _host(30, "78:8a:20:10:00:30", "", (22, 80, 443), "UniFi AP"),
        _host(
            50, "64:eb:8c:10:00:50", "kitchen", (80, 9100), "TM-T88VI",
            LanService("Kitchen", _RAW_PRINTING_TYPE, 9100, ("ty=EPSON TM-T88VI",)),
        ),
        _printer(60, "30:05:5c:a1:c2:60", "Brother MFC-L2750DW", "Office", "media-empty"),
        _printer(61, "00:11:62:a0:b0:61", "Star mC-Print3", "Bar"),
        _host(70, "00:0b:4f:10:00:70", "", (443,), ""),
        _host(
            80, "f4:f5:d8:10:00:80", "menu-board", (8008, 8043), "",
            LanService("Menu board", "_googlecast._tcp", 8009, ("fn=Menu board", "md=Chromecast")),
        ),
        _host(
            81, "b8:27:eb:10:00:81", "kitchen-display", (22, 80), "Kitchen display",
            LanService("Kitchen display", "_http._tcp", 80),
        ),
        _host(
            90, "ac:cc:8e:10:00:90", "axis-accc8e100090", (80, 443, 554), "AXIS P3245-V",
            LanService("AXIS P3245-V - ACCC8E100090", "_axis-video._tcp", 80),
        ),
        _host(
            91, "5c:aa:fd:10:00:91", "sonos-5caafd100091", (), "",
            LanService("Guest room", "_sonos._tcp", 1443, ("model=Sonos One",)),
        ),
        LanHost("192.168.77.142", "d6:10:2a:31:5c:8e", drops_all=True, latency_ms=30.0),
    ),
)  # fmt: skip

QUEUES: Final = (
    Queue("kitchen", "Kitchen", "socket://192.168.77.50:9100", "EPSON TM-T88VI"),
    # The bar printer has moved from .51 to .61.
    Queue(
        "bar", "Bar", f"ipp://192.168.77.51/ipp/print?uuid={UUIDS['Bar']}", "Star mC-Print3",
        job_age_s=25 * 60,
    ),
    Queue("office", "Office", "ipp://192.168.77.60/ipp/print", "Brother MFC-L2750DW"),
)  # fmt: skip

QUEUES_WITHOUT_LAN: Final = (
    QUEUES[0],
    Queue(
        "bar", "Bar", "usb://Star/TSP143?serial=2211460123", "Star TSP143",
        job_age_s=25 * 60,
    ),
)  # fmt: skip
"""The queues of a demo on loopback, where a report can only show the problems of local printers."""
