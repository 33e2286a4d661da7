"""A LAN whose devices announce services with hostile names."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, islice
from math import ceil

from tests.lab.tap.plan import LabPlan, LanService, plan_lan

HOSTILE_NAMES = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\x1b[31mred\x1b]0;title\x07",
    "line\r\nbreak\ttab\x00nul",
    "🖨️🧾👩‍🍳" * 4,
    "\u202eright-to-left\u202c",
    "\udc80\udcff no utf-8 \udcfe",
    "{{7*7}}${jndi:ldap://x}%s%n",
    "'; DROP TABLE printers; --",
    "..\\..\\etc/passwd",
    "a" * 63,
    "Ã©cole ✓ кухня 厨房",
)
_TYPES = ("_ipp._tcp", "_http._tcp", "_pdl-datastream._tcp", "_printer._tcp", "_googlecast._tcp")


def hostile_lan(
    service_count: int, *, subnet: str = "10.80.0.0/22", host_count: int = 120
) -> LabPlan:
    """Return a LAN with ``host_count`` hosts that together announce ``service_count`` services.

    Names and models are hostile. Every fiftieth service has a TXT record of 4 KB.
    """
    plan = plan_lan(subnet, host_count, seed=7)
    stream = _services(service_count)
    share = ceil(service_count / len(plan.hosts))
    hosts = tuple(
        replace(
            host,
            loss=0.0,
            hostname=f"<b>host</b>-{number}\x1b[1m",
            services=tuple(islice(stream, share)),
        )
        for number, host in enumerate(plan.hosts)
    )
    return replace(plan, hosts=hosts)


def _services(count: int) -> Iterator[LanService]:
    names = cycle(HOSTILE_NAMES)
    for number in range(count):
        name = next(names)
        yield LanService(
            instance=f"{number} {name}",
            type=_TYPES[number % len(_TYPES)],
            port=1024 + number % 60000,
            txt=_txt_record(name, is_long=number % 50 == 0),
        )


def _txt_record(name: str, *, is_long: bool) -> tuple[str, ...]:
    entries = (f"ty={name}", f"note={name * 3}", "UUID=not-a-uuid", "rp=../../ipp", "=", "novalue")
    return (*entries, *(f"k{n}=" + "<x>" * 80 for n in range(16))) if is_long else entries
