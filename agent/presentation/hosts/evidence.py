"""The kinds of hosts and the evidence for each. In each table, the first matching line decides.

In the tables of patterns, a line has a kind and then regular expressions, separated by blanks. The
expressions ignore case. A ``~`` in an expression stands for a blank.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal, get_args

HostKind = Literal[
    "machine", "router", "printer", "watched", "screen", "speaker", "camera", "lighting", "home",
    "server", "phone", "network", "unknown",
]  # fmt: skip
HOST_KINDS: Final[tuple[HostKind, ...]] = get_args(HostKind)

KIND_LABELS: Final[dict[HostKind, str]] = {
    "machine": "this machine",
    "router": "router",
    "printer": "printer",
    "watched": "watched device",
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


def _patterns(table: str) -> Patterns:
    """Compile a table of patterns. An indented line continues the line before it."""
    kinds: dict[str, HostKind] = {kind: kind for kind in HOST_KINDS}
    rows = (line.split() for line in re.sub(r"\n +", " ", table).strip().splitlines())
    return tuple(
        (kinds[name], re.compile("|".join(words).replace("~", " "), re.IGNORECASE))
        for name, *words in rows
    )


ROLES: Final[Mapping[str, HostKind]] = {
    "screen": "screen",
    "speaker": "speaker",
    "light": "lighting",
    "camera": "camera",
    "video doorbell": "camera",
    "router": "network",
    "range extender": "network",
}
"""The kinds of hosts by the role that they announce, such as ``speaker`` in ``X (speaker)``. The
kind "router" is only for the gateway, so any other host with the role "router" is a network device.
`kind_of` handles the role of a shared queue. Any other role is no evidence of a kind."""

PRINT_TYPES: Final = frozenset({"_ipp", "_ipps", "_printer", "_pdl-datastream", "_privet"})
"""DNS-SD types of services that print."""

_TYPES: Final[tuple[tuple[HostKind, str], ...]] = (
    ("printer", "_ipp _ipps _printer _pdl-datastream _privet _scanner _uscan _uscans"),
    ("camera", "_axis-video _psia _cgi-camera"),
    ("screen", "_androidtvremote _androidtvremote2 _viziocast _mediaremotetv _amzn-wplay"),
    ("screen", "_roku-rcp _samsungmsf _appletv-v2 _xbmc-jsonrpc _xbmc-jsonrpc-h"),
    ("phone", "_apple-mobdev2 _remotepairing _androidwear _rdlink"),
    (
        "server",
        "_readynas _qdiscover _home-assistant _plexmediasvr _nut _octoprint _zwave-js-server",
    ),
    ("server", "_system-bridge _daap"),
    ("network", "_airport _fbx-api"),
    ("speaker", "_sonos _spotify-connect _soundtouch _heos-audio _musc _linkplay _volumio"),
    ("speaker", "_beoremote _bangolufsen _slimdevices _devialet-http _wyoming"),
    ("lighting", "_hue _elg _nanoleafapi _nanoleafms _wled _lifx _lutron"),
    ("screen", "_googlecast _spotify"),
    ("server", "_smb _workstation _afpovertcp _nfs _adisk _rfb"),
    ("home", "_shelly _esphomelib _hwenergy _ewelink _miio _dkapi _bbxsrv _dvl-deviceapi _ecobee"),
    ("home", "_easylink _enphase-envoy _kizbox _kizboxdev _lookin _plugwise _powerview"),
    ("home", "_powerview-g3 _rabbitair _sideplay _slzb-06 _technove-stations _tvm _uzg-01"),
    ("home", "_zigate-zigbee-gateway _zigstar_gw"),
    ("screen", "_airplay"),
    ("server", "_ssh _sftp-ssh"),
    ("home", "_hap _matter _bond _tuya"),
    ("camera", "_rtsp"),
    ("speaker", "_raop _amzn-alexa"),
    ("home", "_meshcop"),
)
"""DNS-SD types. The types that many kinds of devices announce come last."""

TYPES: Final = tuple((kind, frozenset(types.split())) for kind, types in _TYPES)

MODELS: Final = _patterns(
    r"""
screen    ^(J33I?|J42d|J105a|J305|K66)AP$
server    ^J45[67]AP$
speaker   ^B\d+a?AP$
phone     ^[DJMNP]\d+\w*AP$
phone     \bi(phone|pad|pod)\d SM-[A-Z]\d pixel(~\d|$)
network   airport timecapsule fritz! airos unifi~(ap|switch)
speaker   sound[-~]?(bar|base) ^HW-[A-Z]\w*\d ^HT-[A-Z]?\w*\d ^(YAS|SR)-[A-C]?\d ^DHT-S\d \bambeo\b
          ^BAR[-~]?\d
screen    appletv apple~tv chromecast \broku bravia shield \bAFT\w \bkodi \btv\b
speaker   audioaccessory homepod google~home nest~(audio|mini) \bsonos
server    ^(i?mac|macbook|virtualmac|powermac|powerbook|xserve|rackmac)(pro|mini|air)?(\d|$)
server    synology readynas qnap truenas
"""
)
"""Models. The first four lines match the names of Apple's circuit boards, such as ``J42dAP``, which
Apple's devices announce as their model."""

PAGES: Final = _patterns(
    r"""
server    lights[-~]out \bilo\b idrac \birmc integrated~management~(controller|module) \bcups\b
          \b(open)?bmc\b megarac xclarity \bcimc\b cisco~imc \bipmi\b supermicro
          synology(/|~(nas|dsm)) diskstation readynas qnap (free|true)nas openmediavault proxmox
          esxi home~assistant unifi~(nvr|video) onboard~administrator truenas unraid terramaster
          asustor \bplex\b jellyfin \bemby\b nextcloud owncloud webmin portainer grafana
          \biis\b windows~server apache2?~(debian|ubuntu)~default welcome~to~nginx! node~exporter
          prometheus~time pi-hole adguard~home
camera    \b(ip|net(work)?|web)[-~]?cams?\b \bcamera\b \bcam\b \b(dvr|nvr|netvr)\b iqeye
          video~(recorder|web~server) cross~web~server hikvision dnvrs dvrdvs dahua reolink foscam
          amcrest vivotek mobotix lilin siqura hanwha ^axis\b \b(DCS|DNR)-\d netwave
          log~?in~to~[0-9a-z]{10,} use~.live.~as~user uniview tiandy annke ezviz \barlo\b
          doorbird akuvox \b2n~(ip|access|helios)
speaker   \bsonos \bbose\b \bdenon \bheos marantz musiccast volumio bluesound
lighting  personal~wireless~lighting \bwled\b shelly.*(bulb|rgb|dimmer) nanoleaf
home      shelly tasmota esphome espeasy netping homematic loxone thermostat fritz!dect mystrom
          \b(kasa|tapo)\b netio gude~expert powernet apc~\| network~management~card
          ajax~(systems|hub) jablotron \bsatel\b texecom paxton salto~(ks|space) zkteco \bnuki\b
          kostal fronius \bsma~(solar|inverter) wallbox \bgo-e~charger \bkeba\b
printer   \bprint(er|ing|~server)? laserjet officejet photosmart designjet deskjet km-mfp debut/
          \b(mfc|dcp|hl)-\w*\d \bepson kyocera ecosys lexmark \bxerox \bricoh bizhub imagerunner
          \bcanon\b \bzebra \bztc~ hp-chai ^remote~ui web~image~monitor \bMX-\d{4}
screen    \broku bravia webos smart~?tv projector brightsign signage \btivo magicinfo screenly
          \bxibo yodeck \bkodi\b vizio
phone     ip~(tele)?phone polycom yealink digium~phone \bsnom grandstream \bspa\d{3} \bvvx~?\d
          \bobi\d fanvil gigaset~n\d mitel~\d{4} openstage auerswald comfortel
network   router gateway access~point \bswitch\b fritz! open-?wrt \bluci\b mikrotik \bunifi\b
          ubiquiti edge(os|switch) air(os|max|cube)\b amplifi google~wifi netgear \borbi\b tp-link
          linksys wrt\d+\w* speedtouch thomson zyxel draytek pfsense opnsense sonicwall fortigate
          procurve \baruba\b \bcisco modem freshtomato tomatousb ruckus asuswrt \bdd-wrt aerohive
          huawei echolife smartax \bzx(hn|v10) \b(dir|dsl|td|tl)-\w*\d \busg\d \bwnr\d
          range~extender powerline speedport livebox vodafone~station easybox homebox \bbbox\b
          sagemcom technicolor hitron \barris\b connect~box icotera genexis smart~hub\b sky~hub\b
          hub~[345]\b kpn~box ziggo proximus movistar tim~hub fastgate \biliad telenet
          internet-box freebox starlink \bomada\b \beap\d{3} cambium cnpilot meraki engenius
          peplink teltonika lancom \bbintec keenetic \beero\b \bdeco\b mercusys \btenda
          totolink d-link airstation gl-inet gl\.inet juniper~(networks|web) watchguard sophos
          barracuda~(networks|firewall) cudy \bvigor omnitik routeros capsman digitalisierungsbox
"""
)
"""Titles of web pages, realms of their HTTP authentication, and names of web servers."""

SSH_PORT: Final = 22
QUEUE_PORTS: Final = frozenset({515, 631})
"""The ports of LPD and IPP, by which devices offer print queues."""
RAW_PRINT_PORTS: Final = frozenset(range(9100, 9117))
PORTS: Final[tuple[tuple[HostKind, frozenset[int]], ...]] = (
    ("printer", QUEUE_PORTS | RAW_PRINT_PORTS),
    ("screen", frozenset({8008, 8009})),
    ("phone", frozenset({62078})),
    ("camera", frozenset({554})),
    ("server", frozenset({SSH_PORT, 139, 445, 3389, 53})),
    ("screen", frozenset({7000})),
)
"""Open ports. 80 and 443 are not listed, because most devices have them. 7000 comes last, because
Macs listen on it as well."""

NAMES: Final = _patterns(
    r"""
screen    kiosk chromecast display signage android-?tv [-~]tv\b ^tv-
speaker   \bsonos homepod soundtouch speaker sound-?bar
server    ^(ilo|idrac|bmc|ipmi|xcc|imm2?|cimc)\b ^ilo[a-z0-9]{10}$
lighting  \bwled philips-hue nanoleaf \blifx shelly(bulb|color|rgb|dimmer)
home      shelly tasmota sonoff ^esp[_-] \bwemo ^hs1\d\d \bplug\b tuya homewizard
phone     iphone ipad android galaxy pixel phone tablet
printer   ^(brn|brw|npi|epson|hp[0-9a-f]{6}) print
camera    \bcam(era)?\b ipcam
network   ^(unifi|ubnt|ap|sw|switch|openwrt|mikrotik)\b access-?point router
"""
)
"""Host names. They are the weakest evidence, because users choose them freely."""
