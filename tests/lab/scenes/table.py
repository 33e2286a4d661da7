"""Scenes: printer problems of real venues, with the expected reports before and after the fix.

All scenes share one LAN and one machine, and each report covers all of them. So the tests also
detect a wrong match between a queue of one scene and a printer of another.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.lab.scenes.venue import Act, Lan, Queue, UsbDevice
from tests.lab.tap.ipp import lab_printer
from tests.lab.tap.plan import IppPrinter, LanHost, LanService

NET = "10.77.0"
LAN = Lan(
    subnet=f"{NET}.0/24",
    agent_address=f"{NET}.2",
    gateway=LanHost(f"{NET}.1", "02:77:00:00:01:01", (53, 80, 443)),
    excluded=(f"{NET}.200",),
    config=f"""
[network]
max_duration_seconds = 300
exclude = ["{NET}.200"]
[[printers]]
id = "terminal"
name = "A payment terminal by mistake"
transport = "network"
address = "{NET}.201:10009"
""",
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The expected report of a printer: its status, transport, matched endpoint and reason.

    The reason must contain the texts in ``includes``. It must not contain the texts in
    ``excludes``, which are mostly addresses. Some texts lack their first letter, because it can be
    a capital letter in the reason.
    """

    status: str
    endpoint: str | None = None
    includes: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    transport: str = "network"


@dataclass(frozen=True, slots=True)
class Part:
    """The hosts, devices and queues that a scene adds to an act, and the expected results.

    ``verdicts`` maps the name of a queue, or the id of a configured printer, to its expected
    report. A shell runs ``commands`` during the act (see `Act`).
    """

    verdicts: Mapping[str, Verdict]
    hosts: tuple[LanHost, ...] = ()
    usb: tuple[UsbDevice, ...] = ()
    queues: tuple[Queue, ...] = ()
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scene:
    """A fault, and its fix.

    The first act has the fault, and the second act has the fix. The queues of ``trouble`` still
    exist in the second act. There, each queue of ``fixed`` is added or replaces the queue of the
    same name.
    """

    title: str
    trouble: Part
    fixed: Part = field(default_factory=lambda: Part({}))


def acts(scenes: Sequence[Scene]) -> tuple[Act, Act]:
    """Return an act with all faults, and an act with all fixes."""
    return (
        _act([scene.trouble for scene in scenes]),
        _act([scene.fixed for scene in scenes]),
    )


def _act(parts: Sequence[Part]) -> Act:
    return Act(
        hosts=tuple(host for part in parts for host in part.hosts),
        usb=tuple(device for part in parts for device in part.usb),
        queues=tuple(queue for part in parts for queue in part.queues),
        commands=tuple(command for part in parts for command in part.commands),
    )


# ------------------------------------------------------------------ devices and queues


def mac_of(address: str) -> str:
    return f"02:77:00:00:00:{int(address.rpartition('.')[2]):02x}"


def uuid_of(number: int) -> str:
    return f"d4d1e202-baff-3fff-46ff-3ab6db0000{number:02x}"


def printer(
    number: int | str,
    name: str,
    *txt: str,
    uuid: str = "",
    host: str = "",
    mac: str = "",
    ports: tuple[int, ...] = (80, 515, 631, 9100),
    ipp: tuple[IppPrinter, ...] = (),
) -> LanHost:
    """Return a printer that announces ``name``.

    ``number`` is the last part of its address, or the whole address as a string.
    """
    address = number if isinstance(number, str) else f"{NET}.{number}"
    uuid_txt = (f"UUID={uuid}",) if uuid else ()
    service = LanService(name, "_ipp._tcp", 631, ("rp=ipp/print", *uuid_txt, *txt))
    mac = mac or mac_of(address)
    return LanHost(address, mac, ports, hostname=host, services=(service,), ipp=ipp)


def _printer_that_announces(number: int, service: LanService) -> LanHost:
    """Return a printer that announces ``service`` instead of IPP."""
    return LanHost(f"{NET}.{number}", mac_of(f".{number}"), (80, 515, 9100), services=(service,))


def at(number: int, port: int = 631) -> str:
    return f"{NET}.{number}:{port}"


def _unreachable(*excludes: int, includes: tuple[str, ...] = ()) -> Verdict:
    """``excludes`` are the last parts of the addresses that the reason must not contain."""
    return Verdict("unreachable", None, includes, tuple(f"{NET}.{number}" for number in excludes))


def _reachable(endpoint: str, *includes: str) -> Verdict:
    return Verdict("reachable", endpoint, includes)


def _usb(status: str, *includes: str) -> Verdict:
    return Verdict(status, None, includes, transport="usb")


# ------------------------------------------------------------------ printers by USB

STAR = UsbDevice(
    "1-1", "Star Micronics", "Star USB Printer", device_id="MFG:Star;MDL:TSP143 (STR_T-001);"
)
WIDE = UsbDevice("1-2", "POS", "Printer80", "00000000", node="lp1")
NARROW = UsbDevice("1-3", "POS", "Printer58", "00000000", node="lp2")
LABELS = UsbDevice("1-4", "Zeta", "Labels 4", "0.00", node="lp3")
TAGS = UsbDevice("1-5", "Zeta", "Tags 2", "0.00", node="lp4")
CANON = UsbDevice("1-6", "Canon", "TR150 series", node="lp5")

USB_SCENES = (
    Scene(
        "the printer of a raw queue is recognised by the model in the URI",
        Part(
            {"star": _usb("unreachable")},
            queues=(Queue("star", "usb://Star/TSP143%20(STR_T-001)"),),
        ),
        Part({"star": _usb("reachable", "/dev/usb/lp0")}, usb=(STAR,)),
    ),
    Scene(
        "the printer of a renamed queue with a wrong driver is recognised by the model in the URI",
        Part(
            {"till": _usb("unreachable")},
            queues=(Queue("till", "usb://Star/TSP143%20(STR_T-001)", "Bar", "Star TSP100 Cutter"),),
        ),
        # The first scene plugs in this printer.
        Part({"till": _usb("reachable", "/dev/usb/lp0")}),
    ),
    Scene(
        "a serial number of zeros identifies no printer",
        Part(
            {
                "wide": _usb("reachable", "/dev/usb/lp1"),
                "narrow": _usb("unreachable"),
                "labels": _usb("reachable", "/dev/usb/lp3"),
                "tags": _usb("unreachable"),
            },
            usb=(WIDE, LABELS),
            queues=(
                Queue("wide", "usb://POS/Printer80?serial=00000000"),
                Queue("narrow", "usb://POS/Printer58?serial=00000000"),
                Queue("labels", "usb://Zeta/Labels%204?serial=0.00"),
                Queue("tags", "usb://Zeta/Tags%202?serial=0.00"),
            ),
        ),
        Part(
            {
                "wide": _usb("reachable", "/dev/usb/lp1"),
                "narrow": _usb("reachable", "/dev/usb/lp2"),
                "labels": _usb("reachable", "/dev/usb/lp3"),
                "tags": _usb("reachable", "/dev/usb/lp4"),
            },
            usb=(WIDE, NARROW, LABELS, TAGS),
        ),
    ),
    Scene(
        "a queue that prints through ipp-usb is reachable when its USB printer is plugged in",
        Part(
            # The status is not "unreachable", because a user may have chosen the name in the URI.
            # Then the name matches no model, even if the printer is plugged in.
            {"canon": _usb("unknown"), "canon-2": _usb("unknown")},
            queues=(
                Queue("canon", "dnssd://Canon%20TR150%20series%20(USB)._ipp._tcp.local/"),
                Queue("canon-2", "ipp://Canon%20TR150%20series%20(USB)._ipp._tcp.local/"),
            ),
        ),
        Part(
            {"canon": _usb("reachable", "/dev/usb/lp5"), "canon-2": _usb("reachable")},
            usb=(CANON,),
        ),
    ),
)

# ------------------------------------------------------------------ a different device answers

BAR = printer(11, "Kitchen", "ty=Epson TM-m30")
TERRACE = printer(13, "Terrace")
CAST = LanHost(
    f"{NET}.30",
    mac_of(".90"),  # not the MAC of the printer that has this address later
    (8008, 8009),
    hostname="lounge",
    services=(LanService("Lounge-1", "_googlecast._tcp", 8009, ("md=Chromecast", "fn=Lounge")),),
)
TERMINAL = LanHost(f"{NET}.201", mac_of(".201"), (8443, 10009, 12000, 33333))
EXCLUDED = LanHost(f"{NET}.200", mac_of(".200"), (80, 631, 9100))

WRONG_DEVICE_SCENES = (
    Scene(
        "the printer Kitchen is off, and the printer of the bar announces the name Kitchen",
        Part(
            {"kitchen": _unreachable(11), "bar": _reachable(at(11, 9100))},
            (BAR,),
            queues=(
                Queue("kitchen", f"socket://{NET}.10", "Kitchen"),
                Queue("bar", f"socket://{NET}.11", "Bar"),
            ),
        ),
        Part(
            {"kitchen": _reachable(at(10, 9100)), "bar": _reachable(at(11, 9100))},
            (BAR, printer(10, "Kitchen (2)")),
        ),
    ),
    Scene(
        "a device without a queue announces the name of a printer that is off",
        Part(
            {"terrace": _unreachable(includes=(f"{NET}.13", "may be"))},
            (TERRACE,),
            queues=(Queue("terrace", f"socket://{NET}.12", "Terrace"),),
        ),
        Part({"terrace": _reachable(at(12, 9100))}, (TERRACE, printer(12, "Terrace (2)"))),
    ),
    Scene(
        "a Chromecast has the printer's address",
        Part(
            {"lounge": _unreachable(includes=("Chromecast",))},
            (CAST,),
            queues=(Queue("lounge", f"socket://{NET}.30"),),
        ),
        Part({"lounge": _reachable(at(30, 9100))}, (printer(30, "Lounge printer"),)),
    ),
    Scene(
        "printers are set up at the addresses of a payment terminal and of an excluded device",
        Part(
            {
                "terminal": Verdict("reachable", f"{NET}.201:10009"),
                "left-alone": Verdict("unknown"),
            },
            (TERMINAL, EXCLUDED),
            queues=(Queue("left-alone", f"ipp://{NET}.200/ipp/print"),),
        ),
        Part({"terminal": _unreachable(), "left-alone": Verdict("unknown")}, (EXCLUDED,)),
    ),
)

# ------------------------------------------------------------------ one UUID at two addresses

POOL_MAC = "00:1b:a9:00:00:3f"
POOL_UUID = "e3248000-80ce-11db-8000-001ba900003f"
OFFICE = tuple(printer(n, "Office", uuid=uuid_of(14), host="office") for n in (14, 15))
CELLAR = printer(16, "Cellar", uuid=uuid_of(16), host="cellar")
RELAY = printer(17, "AirPrint Cellar", uuid=uuid_of(16), host="relay", ports=(22, 631))
ATTIC_MAC = "00:1b:a9:00:00:18"
ATTIC_UUID = "e3248000-80ce-11db-8000-001ba9000018"
ATTIC = printer(18, "Attic", uuid=ATTIC_UUID, host="attic", mac=ATTIC_MAC)
OLD_ATTIC = printer(18, "Old attic", uuid=ATTIC_UUID, host="attic", mac=ATTIC_MAC)
SECOND_RELAY = printer(19, "AirPrint Attic", uuid=ATTIC_UUID, host="relay2", ports=(22, 631))

UUID_SCENES = (
    Scene(
        "one printer on cable and Wi-Fi is off, then on",
        Part(
            {"office": _unreachable(), "office-wifi": _unreachable(), "old-office": _unreachable()},
            queues=(
                Queue("office", f"dnssd://Office._ipp._tcp.local/?uuid={uuid_of(14)}"),
                Queue("office-wifi", f"ipp://{NET}.15/ipp/print?uuid={uuid_of(14)}"),
                Queue("old-office", f"dnssd://Old%20name._ipp._tcp.local/?uuid={uuid_of(14)}"),
            ),
        ),
        Part(
            {
                "office": _reachable(at(14)),
                "office-wifi": _reachable(at(15)),
                # CUPS resolves the instance name, and nothing announces it. CUPS uses the UUID
                # only to exclude other services of this name.
                "old-office": _unreachable(includes=("o device announces the name Old name",)),
            },
            OFFICE,
        ),
    ),
    Scene(
        "a relay announces the UUID of the printer behind it; the name identifies the printer",
        Part(
            {"cellar": _reachable(at(16))},
            (CELLAR, RELAY),
            queues=(Queue("cellar", f"dnssd://Cellar._ipp._tcp.local/?uuid={uuid_of(16)}"),),
        ),
        Part({"cellar": _reachable(at(16))}, (CELLAR,)),
    ),
    Scene(
        "a printer was renamed, and a relay announces its UUID",
        Part(
            {"attic": Verdict("unreachable", at(18), (f"is at {NET}.18", "was it renamed?"))},
            (ATTIC, SECOND_RELAY),
            queues=(Queue("attic", f"dnssd://Old%20attic._ipp._tcp.local/?uuid={ATTIC_UUID}"),),
        ),
        Part({"attic": _reachable(at(18))}, (OLD_ATTIC, SECOND_RELAY)),
    ),
)

# ------------------------------------------------------------------ the queue's own path

SERVER = printer(20, "Lobby @ server", ipp=(lab_printer(uuid_of(20), path="/printers/lobby"),))
SERVER_WITH_BOTH = printer(
    20,
    "Lobby @ server",
    ipp=tuple(
        lab_printer(uuid_of(number), path=path)
        for number, path in ((20, "/printers/lobby"), (21, "/printers/GONE"))
    ),
)

PATH_SCENES = (
    Scene(
        "a print server no longer has the queue",
        Part(
            {
                "gone": Verdict("unreachable", at(20), ("printers/GONE",)),
                "lobby": _reachable(at(20)),
            },
            (SERVER,),
            queues=(
                Queue("gone", f"ipp://{NET}.20/printers/GONE"),
                Queue("lobby", f"ipp://{NET}.20/printers/lobby"),
            ),
        ),
        Part({"gone": _reachable(at(20)), "lobby": _reachable(at(20))}, (SERVER_WITH_BOTH,)),
    ),
    Scene(
        "a printer announces that it is stopped",
        Part(
            {"foyer": _reachable(at(22), "stopped")},
            (printer(22, "Foyer", "printer-state=5"),),
            queues=(Queue("foyer", f"ipp://{NET}.22/ipp/print"),),
        ),
        Part(
            {"foyer": Verdict("reachable", at(22), excludes=("stopped",))},
            (printer(22, "Foyer", "printer-state=3"),),
        ),
    ),
    Scene(
        "a printer answers that it is stopped, and why",
        Part(
            {"hall": _reachable(at(23), "out of paper", "cover open")},
            (
                printer(
                    23,
                    "Hall",
                    ipp=(
                        lab_printer(
                            uuid_of(23),
                            "printer-state=5",
                            "printer-state-reasons=media-empty-error",
                            "printer-state-reasons=cover-open",
                        ),
                    ),
                ),
            ),
            queues=(Queue("hall", f"ipp://{NET}.23/ipp/print"),),
        ),
        Part(
            {"hall": Verdict("reachable", at(23), excludes=("paper", "stopped"))},
            (printer(23, "Hall", ipp=(lab_printer(uuid_of(23)),)),),
        ),
    ),
)

# ------------------------------------------------------------------ device URIs

_UNUSUAL = (
    (
        "hp-zc",
        "hp:/net/HP_LaserJet_400?zc=NPI7FE558",
        printer(40, "LJ", host="npi7fe558", mac="00:1b:a9:7f:e5:58"),
        9100,
    ),
    (
        "hp-zc-name",
        "hp:/net/HP_OJ_9010?zc=HP_OJ_9010_series_5D3821",
        printer(41, "HP OJ 9010 series [5D3821]"),
        9100,
    ),
    ("implicit", "implicitclass://Receipt%40till1/", printer(44, "Receipt @ till1"), 631),
    (
        "scoped",
        "socket://[v1.fe80::21b:a9ff:fe00:2600+eth0]",
        printer(45, "C", mac="00:1b:a9:00:26:00"),
        9100,
    ),
    (
        "escaped",
        "dnssd://DYMO%5C032LabelWriter%5C032450._ipp._tcp.local/",
        printer(46, "DYMO LabelWriter 450"),
        631,
    ),
)
"""Queues with unusual URIs: the name and the URI of the queue, its printer, and the port."""
_BACKENDS = (
    ("smb", "smb://server/bar", "network"),
    ("beh", "beh:/1/3/5/socket://10.77.0.50:9100", "network"),
    ("tea4cups", "tea4cups:socket://10.77.0.50:9100", "network"),
    ("gutenprint53+usb", "gutenprint53+usb://canon-cp800/1234", "usb"),
    ("cnijbe2", "cnijbe2://Canon/?port=net&serial=60-12-8B-65-7C-47", "network"),
    ("bjnp", "bjnp://10.77.0.50:8611", "network"),
    ("file", "file:///dev/usb/lp0", "usb"),
)
"""Backends whose queues are not checked: the name, the URI of a queue, and the transport."""

URI_SCENES = (
    Scene(
        "printers with unusual URIs are off, then on",
        Part(
            # The collector does not contact link-local IPv6 addresses. While the printer "scoped"
            # is off, no other address of it is known.
            {
                name: Verdict("unknown" if name == "scoped" else "unreachable")
                for name, *_ in _UNUSUAL
            },
            queues=tuple(Queue(name, uri) for name, uri, *_ in _UNUSUAL),
        ),
        Part(
            {name: _reachable(f"{host.address}:{port}") for name, _, host, port in _UNUSUAL},
            tuple(host for *_, host, _ in _UNUSUAL),
        ),
    ),
    Scene(
        "the reason of a queue that is not checked names its backend",
        Part(
            {
                f"by-{backend.replace('+', '-')}": Verdict(
                    "unknown", None, (f"backend {backend}",), transport=transport
                )
                for backend, _, transport in _BACKENDS
            },
            queues=tuple(Queue(f"by-{b.replace('+', '-')}", uri) for b, uri, _ in _BACKENDS),
        ),
    ),
)

# ------------------------------------------------------------------ names that do not resolve

_BY_HOST_NAME = (
    ("half-mac", "socket://hp4d1c2a.lan", printer(42, "A", mac="00:1b:a9:4d:1c:2a"), 9100),
    ("brn", "lpd://BRN_020554/BINARY_P1", printer(43, "B", mac="00:80:77:02:05:54"), 515),
    ("brother", "lpd://BRN807702EF165F/L", printer(71, "D", mac="80:77:02:ef:16:5f"), 515),
    ("bare", "socket://snug", printer(72, "E", host="snug"), 9100),
)
"""Queues with a host name in their URI: the name and the URI of the queue, its printer, and the
port."""
_UNRESOLVED = {
    "half-mac": Verdict("unreachable", at(42, 9100), (f"the device is at {NET}.42",)),
    "brn": Verdict("unreachable", at(43, 515), (f"the device is at {NET}.43",)),
    "brother": Verdict("unreachable", at(71, 515), ("o address was found for the name brn80",)),
    "bare": _unreachable(includes=(f"its host name was seen at {NET}.72",)),
}
_ETC_HOSTS = "".join(f"{host.address} {uri.split('/')[2]}\\n" for _, uri, host, _ in _BY_HOST_NAME)

NAMES_SCENES = (
    Scene(
        "the host name in the URI has no address, although the printer was discovered",
        Part(
            _UNRESOLVED,
            tuple(host for *_, host, _ in _BY_HOST_NAME),
            queues=tuple(Queue(name, uri) for name, uri, *_ in _BY_HOST_NAME),
        ),
        Part(
            {name: _reachable(f"{host.address}:{port}") for name, _, host, port in _BY_HOST_NAME},
            tuple(host for *_, host, _ in _BY_HOST_NAME),
            commands=(f"printf '{_ETC_HOSTS}' > /run/hosts && mount --bind /run/hosts /etc/hosts",),
        ),
    ),
    Scene(
        "mDNS is switched off in a printer that is set up by its name below .local",
        Part(
            {
                "loft": Verdict("unreachable", at(73, 9100), ("brn80770200000", f"{NET}.73")),
                "den": _unreachable(includes=("o device announces the name Den",)),
            },
            (
                LanHost(f"{NET}.73", "80:77:02:00:00:01", (80, 515, 631, 9100)),
                LanHost(f"{NET}.74", mac_of(".74"), (80, 515, 631, 9100)),
            ),
            queues=(
                Queue("loft", "socket://BRN807702000001.local"),
                Queue("den", "dnssd://Den._ipp._tcp.local/"),
            ),
        ),
        Part(
            {"loft": _reachable(at(73, 9100)), "den": _reachable(at(74))},
            (
                printer(73, "Loft", host="BRN807702000001", mac="80:77:02:00:00:01"),
                printer(74, "Den"),
            ),
        ),
    ),
    Scene(
        "the printer's name is announced only with another type of service",
        Part(
            {
                "nook": _unreachable(
                    includes=(f"Nook is announced at {NET}.75, but not as _ipp._tcp",)
                ),
                "bay": _unreachable(
                    includes=(f"Bay is announced at {NET}.76, but not as _ipp._tcp",)
                ),
            },
            (
                _printer_that_announces(
                    75, LanService("Nook", "_pdl-datastream._tcp", 9100, ("ty=Lab",))
                ),
                _printer_that_announces(76, LanService("Bay", "_http._tcp", 80)),
            ),
            queues=(
                Queue("nook", "dnssd://Nook._ipp._tcp.local/"),
                Queue("bay", "dnssd://Bay._ipp._tcp.local/"),
            ),
        ),
        Part(
            {"nook": _reachable(at(75)), "bay": _reachable(at(76))},
            (printer(75, "Nook"), printer(76, "Bay")),
        ),
    ),
    Scene(
        "a relay announces the UUID of a printer that is off",
        Part(
            {"crypt": _unreachable(includes=("o device announces the name Crypt",))},
            (printer(78, "AirPrint Crypt", uuid=uuid_of(77), host="relay4", ports=(22, 631)),),
            queues=(Queue("crypt", f"dnssd://Crypt._ipp._tcp.local/?uuid={uuid_of(77)}"),),
        ),
        Part(
            {"crypt": _reachable(at(77))},
            (
                printer(77, "Crypt", uuid=uuid_of(77)),
                printer(78, "AirPrint Crypt", uuid=uuid_of(77), host="relay4", ports=(22, 631)),
            ),
        ),
    ),
    Scene(
        "one service without a UUID is announced at two addresses, by cable and by Wi-Fi",
        Part(
            {"dual": _unreachable()},
            queues=(Queue("dual", "dnssd://Dual._ipp._tcp.local/"),),
        ),
        Part(
            {"dual": _reachable(at(80))},
            tuple(printer(number, "Dual", host="dual") for number in (80, 81)),
        ),
    ),
)

# ------------------------------------------------------------------ printers that moved


def _with_uuid(number: int) -> str:
    return f"ipp://{NET}.{number}/ipp/print?uuid={uuid_of(number)}"


MOVED_SCENES = (
    Scene(
        "no DHCP server answered the printer",
        Part(
            {"patio": _unreachable(includes=("DHCP",))},
            (printer("169.254.7.8", "Patio", uuid=uuid_of(60), mac=mac_of(".60")),),
            queues=(Queue("patio", _with_uuid(60)),),
        ),
        Part({"patio": _reachable(at(60))}, (printer(60, "Patio", uuid=uuid_of(60)),)),
    ),
    Scene(
        "the printer is in another subnet",
        Part(
            {"garden": _unreachable(includes=("another network",))},
            (printer("192.168.5.20", "Garden", uuid=uuid_of(61), mac=mac_of(".61")),),
            queues=(Queue("garden", _with_uuid(61)),),
        ),
        Part({"garden": _reachable(at(61))}, (printer(61, "Garden", uuid=uuid_of(61)),)),
    ),
    Scene(
        "the printer has another address, and the queue is set up again",
        Part(
            {"pool": Verdict("unreachable", at(63), ("oved to",))},
            (printer(63, "Pool", uuid=POOL_UUID, mac=POOL_MAC),),
            queues=(Queue("pool", f"ipp://{NET}.62/ipp/print?uuid={POOL_UUID}"),),
        ),
        Part(
            {"pool": _reachable(at(63))},
            (printer(63, "Pool", uuid=POOL_UUID, mac=POOL_MAC),),
            queues=(Queue("pool", f"ipp://{NET}.63/ipp/print?uuid={POOL_UUID}"),),
        ),
    ),
    Scene(
        "a device announces the UUID of a printer that is off: it may be a relay",
        Part(
            {
                "sauna": _unreachable(
                    includes=("is it switched on", f"its UUID was seen at {NET}.70")
                )
            },
            (printer(70, "AirPrint Sauna", uuid=uuid_of(69), host="relay3", ports=(22, 631)),),
            queues=(Queue("sauna", _with_uuid(69)),),
        ),
        Part({"sauna": _reachable(at(69))}, (printer(69, "Sauna", uuid=uuid_of(69)),)),
    ),
    Scene(
        "the name of a driver is evidence only if it contains a model",
        Part(
            {
                "raw": _unreachable(65, 67),
                "ufr": _unreachable(includes=(f"{NET}.65",)),
                "kpdl": _unreachable(includes=(f"{NET}.67",)),
            },
            (printer(65, "MF", "ty=Canon MF640C"), printer(67, "KM", "ty=ECOSYS M2540dn")),
            queues=(
                Queue("raw", f"socket://{NET}.68"),
                Queue("ufr", f"socket://{NET}.64", driver="Canon MF640C Series UFR II ver.4.0"),
                Queue("kpdl", f"socket://{NET}.66", driver="Kyocera ECOSYS M2540dn (KPDL)"),
            ),
        ),
        Part(
            {"ufr": _reachable(at(65, 9100)), "kpdl": _reachable(at(67, 9100))},
            (printer(65, "MF", "ty=Canon MF640C"), printer(67, "KM", "ty=ECOSYS M2540dn")),
            queues=(
                Queue("ufr", f"socket://{NET}.65", driver="Canon MF640C Series UFR II ver.4.0"),
                Queue("kpdl", f"socket://{NET}.67", driver="Kyocera ECOSYS M2540dn (KPDL)"),
            ),
        ),
    ),
)

SCENES = (
    *USB_SCENES,
    *WRONG_DEVICE_SCENES,
    *UUID_SCENES,
    *PATH_SCENES,
    *URI_SCENES,
    *NAMES_SCENES,
    *MOVED_SCENES,
)
