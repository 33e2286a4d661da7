"""The kinds of hosts, and what speaks for each: tables, the first line that fits decides.

Words are parts of regular expressions, for any case, between blanks; ``~`` stands for a blank.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal, get_args

HostKind = Literal[
    "machine",
    "router",
    "printer",
    "screen",
    "speaker",
    "camera",
    "lighting",
    "home",
    "server",
    "phone",
    "network",
    "unknown",
]
HOST_KINDS: Final[tuple[HostKind, ...]] = get_args(HostKind)

KIND_LABELS: Final[dict[HostKind, str]] = {
    "machine": "this machine",
    "router": "router",
    "printer": "printer",
    "screen": "screen or kiosk",
    "speaker": "speaker",
    "camera": "camera",
    "lighting": "lighting",
    "home": "home device",
    "server": "server or PC",
    "phone": "phone or tablet",
    "network": "network device",
    "unknown": "unknown",
}

Patterns = tuple[tuple[HostKind, re.Pattern[str]], ...]


def _any(words: str) -> re.Pattern[str]:
    return re.compile("|".join(words.split()).replace("~", " "), re.IGNORECASE)


ROLES: Final[Mapping[str, HostKind]] = {
    "screen": "screen",
    "speaker": "speaker",
    "light": "lighting",
    "camera": "camera",
    "video doorbell": "camera",
    "router": "network",
    "range extender": "network",
}
"""Of the roles that devices tell, those that decide; beside others the types of services do."""

PRINT_TYPES: Final = frozenset({"_ipp", "_ipps", "_printer", "_pdl-datastream", "_privet"})

_TYPES: Final[tuple[tuple[HostKind, str], ...]] = (
    ("printer", "_ipp _ipps _printer _pdl-datastream _privet _scanner _uscan _uscans"),
    ("camera", "_axis-video _psia _cgi-camera"),
    ("screen", "_androidtvremote _androidtvremote2 _viziocast _mediaremotetv _amzn-wplay"),
    ("screen", "_roku-rcp _samsungmsf _appletv-v2 _xbmc-jsonrpc"),
    ("phone", "_apple-mobdev2 _remotepairing _androidwear _rdlink"),
    ("server", "_readynas _qdiscover _home-assistant _plexmediasvr"),
    ("speaker", "_sonos _spotify-connect _soundtouch _heos-audio _musc _linkplay _volumio"),
    ("speaker", "_beoremote _bangolufsen _slimdevices"),
    ("lighting", "_hue _elg _nanoleafapi _wled _lifx _lutron"),
    ("screen", "_googlecast _spotify"),
    ("server", "_smb _workstation _afpovertcp _nfs _adisk _rfb"),
    ("home", "_shelly _esphomelib _hwenergy _ewelink _miio _dkapi"),
    ("screen", "_airplay"),
    ("server", "_ssh _sftp-ssh"),
    ("home", "_hap _matter _bond _tuya"),
    ("camera", "_rtsp"),
    ("speaker", "_raop"),
)
"""DNS-SD types; those that many sorts of devices announce come last."""

TYPES: Final = tuple((kind, frozenset(types.split())) for kind, types in _TYPES)

MODELS: Final[Patterns] = (
    ("screen", _any(r"^(J33I?|J42d|J105a|J305|K66)AP$")),
    ("server", _any(r"^J45[67]AP$")),
    ("speaker", _any(r"^B\d+a?AP$")),
    ("phone", _any(r"^[DJMNP]\d+\w*AP$")),
    ("phone", _any(r"\bi(phone|pad|pod)\d SM-[A-Z]\d pixel(~\d|$)")),
    ("network", _any(r"airport timecapsule fritz! airos unifi~(ap|switch)")),
    ("screen", _any(r"appletv apple~tv chromecast \broku bravia shield \bAFT\w \bkodi \btv\b")),
    ("speaker", _any(r"audioaccessory homepod google~home nest~(audio|mini) \bsonos")),
    (
        "server",
        _any(r"^(i?mac|macbook|virtualmac|powermac|powerbook|xserve|rackmac)(pro|mini|air)?(\d|$)"),
    ),
    ("server", _any(r"synology readynas qnap truenas")),
)
"""Models, first Apple's boards, which telephones and tablets announce as theirs."""

PAGES: Final[Patterns] = (
    (
        "server",
        _any(
            r"lights[-~]out \bilo\b idrac \birmc integrated~management~controller \bcups\b"
            r" synology(/|~(nas|dsm)) diskstation readynas qnap (free|true)nas openmediavault"
            r" proxmox esxi home~assistant unifi~(nvr|video) onboard~administrator"
        ),
    ),
    (
        "camera",
        _any(
            r"\b(ip|net(work)?|web)[-~]?cams?\b \bcamera\b \bcam\b \b(dvr|nvr|netvr)\b iqeye"
            r" video~(recorder|web~server) cross~web~server hikvision dnvrs dvrdvs dahua reolink"
            r" foscam amcrest vivotek mobotix lilin siqura hanwha ^axis\b \b(DCS|DNR)-\d netwave"
            r" log~?in~to~[0-9a-z]{10,} use~.live.~as~user"
        ),
    ),
    ("speaker", _any(r"\bsonos \bbose\b \bdenon \bheos marantz musiccast volumio bluesound")),
    (
        "lighting",
        _any(r"personal~wireless~lighting \bwled\b shelly.*(bulb|rgb|dimmer) nanoleaf"),
    ),
    ("home", _any(r"shelly tasmota esphome espeasy netping homematic loxone thermostat")),
    (
        "printer",
        _any(
            r"\bprint(er|ing|~server)? laserjet officejet photosmart designjet deskjet km-mfp"
            r" debut/ \b(mfc|dcp|hl)-\w*\d \bepson kyocera ecosys lexmark \bxerox \bricoh bizhub"
            r" imagerunner \bcanon\b \bzebra \bztc~ hp-chai ^remote~ui web~image~monitor \bMX-\d{4}"
        ),
    ),
    ("screen", _any(r"\broku bravia webos smart~?tv projector brightsign signage \btivo")),
    (
        "phone",
        _any(
            r"ip~(tele)?phone polycom yealink digium~phone \bsnom grandstream \bspa\d{3} \bvvx~?\d"
            r" \bobi\d"
        ),
    ),
    (
        "network",
        _any(
            r"router gateway access~point \bswitch\b fritz! open-?wrt \bluci\b mikrotik \bunifi\b"
            r" ubiquiti edge(os|switch) air(os|max|cube)\b amplifi google~wifi netgear \borbi\b"
            r" tp-link linksys wrt\d+\w* speedtouch thomson zyxel draytek pfsense opnsense"
            r" sonicwall fortigate procurve \baruba\b \bcisco modem freshtomato tomatousb ruckus"
            r" asuswrt \bdd-wrt aerohive huawei echolife smartax \bzx(hn|v10)"
            r" \b(dir|dsl|td|tl)-\w*\d \busg\d \bwnr\d range~extender powerline"
        ),
    ),
)
"""Titles, realms and servers of web pages."""

PORTS: Final[tuple[tuple[HostKind, frozenset[int]], ...]] = (
    ("printer", frozenset({515, 631, *range(9100, 9117)})),
    ("screen", frozenset({8008, 8009})),
    ("phone", frozenset({62078})),
    ("camera", frozenset({554})),
    ("server", frozenset({22, 139, 445, 3389, 53})),
    ("screen", frozenset({7000})),
)
"""Without 80 and 443, where everything answers; Macs listen on 7000 as well."""

NAMES: Final[Patterns] = (
    ("screen", _any(r"kiosk chromecast display signage android-?tv [-~]tv\b ^tv-")),
    ("speaker", _any(r"\bsonos homepod soundtouch speaker")),
    ("lighting", _any(r"\bwled philips-hue nanoleaf \blifx shelly(bulb|color|rgb|dimmer)")),
    ("home", _any(r"shelly tasmota sonoff ^esp[_-] \bwemo ^hs1\d\d \bplug\b tuya homewizard")),
    ("phone", _any(r"iphone ipad android galaxy pixel phone tablet")),
    ("printer", _any(r"^(brn|brw|npi|epson|hp[0-9a-f]{6}) print")),
    ("camera", _any(r"\bcam(era)?\b ipcam")),
    ("network", _any(r"^(unifi|ubnt|ap|sw|switch|openwrt|mikrotik)\b access-?point router")),
)
"""Names of hosts, which people and DHCP give: the weakest evidence."""
