"""What each key of the configuration means: its unit, its default, when to change it.

The example file and the JSON Schema are made from these texts and from the models of `config`; a
daemon never loads them.
"""

from collections.abc import Mapping
from typing import Final

TEXTS: Final[Mapping[str, str]] = {
    "service": "The service this machine reports to, and the way to it.",
    "service.base_url": "Address of the service, https (http only for loopback). Required.",
    "service.location_id": "The venue this machine stands in, as the service calls it. Required.",
    "service.api_key_file": (
        "File that holds the API key (with a write grant) and nothing else; if it is not set, "
        'the key is the systemd credential "api-key" or VENUE_AGENT_API_KEY. Read again when it'
        " changes."
    ),
    "service.ca_file": (
        "PEM file of certificates trusted besides the operating system's. Set it where TLS is "
        "inspected or the service has an authority of its own."
    ),
    "service.proxy": (
        "Proxy such as http://user:password@proxy:3128. If it is not set, HTTPS_PROXY and "
        "NO_PROXY of the environment hold. A service on this machine (loopback) is asked straight."
    ),
    "service.request_timeout_seconds": (
        "Longest wait for one answer. Raise it on satellite links."
    ),
    "device": "This machine.",
    "device.state_dir": (
        "Where identity, journal and outbox live; if it is not set, /var/lib/venue-agent or the"
        " platform's equivalent, and a directory of the user's own for others than root. A "
        "change needs a restart."
    ),
    "device.legacy_install_id": (
        "Name of this installation in reports; if it is not set, one is made at the first "
        "start. Set it where machines already have names."
    ),
    "network": "What network reports look at.",
    "network.enabled": (
        "Answer requests for network reports. Switch it off where networks may not be looked at."
    ),
    "network.subnets": (
        'Private IPv4 subnets to scan, such as "192.168.1.0/24"; if none is named, this '
        "machine's own networks. Name some to leave others alone."
    ),
    "network.exclude": (
        'Addresses and subnets that are never contacted, such as "192.168.1.20". Name devices '
        "here that must be left alone."
    ),
    "network.ports": (
        "TCP ports tried on each host: opened and closed, and only those of the web and of IPP "
        "are ever written to. Shorten the list for a quicker, quieter scan."
    ),
    "network.max_hosts": (
        "Most addresses one report contacts. Raise it where the venue's network is larger."
    ),
    "network.max_services": (
        "Most announced services one report keeps. There is hardly a reason to change it."
    ),
    "network.max_duration_seconds": "Longest time for one report. Raise it for large networks.",
    "network.mdns_service_types": (
        'DNS-SD service types browsed besides the built-in ones, such as "_till._tcp". Add '
        "those of the venue's own devices."
    ),
    "network.device_only": (
        "Look at this machine only and send nothing to the network. For networks that forbid scans."
    ),
    "network.enrich": (
        "Ask printers (IPP, port 631) and web pages (HTTP GET) what they are. Switch it off to "
        "open and close connections only."
    ),
    "printers": "Printers to look for besides the system's own queues; one such table for each.",
    "printers.id": "Short name used in reports.",
    "printers.name": "Name people know the printer by.",
    "printers.transport": "How the printer is attached.",
    "printers.address": "host:port, a host, a MAC address or a device path.",
    "application": "What application snapshots look at.",
    "application.enabled": (
        "Answer requests for application snapshots. Switch it off where they are not wanted."
    ),
    "application.watch_processes": (
        'Names of the venue\'s own programs, such as "pos-till": reports say whether they run.'
    ),
    "application.kiosk_debug_url": (
        "The kiosk browser's DevTools address on loopback, such as http://127.0.0.1:9222; if it"
        " is not set, the browser is not asked."
    ),
    "application.max_duration_seconds": (
        "Longest time for one snapshot. Raise it on slow machines."
    ),
    "limits": "What may be sent and kept.",
    "limits.max_report_bytes": (
        "Largest report sent; a larger one is shrunk and says so. Lower it if the service asks."
    ),
    "limits.outbox_max_bytes": (
        "Room for reports that wait for the service. Lower it on small disks."
    ),
    "limits.outbox_max_age_days": (
        "Reports older than this are given up, and counted. Raise it where links fail for long."
    ),
    "limits.min_collection_interval_seconds": (
        "Least time between two collections of a kind; the requests that come meanwhile are "
        "answered from the next one together. Raise it where requests come too often."
    ),
    "logging": "The daemon's log, on stderr.",
    "logging.level": "How much is logged. Choose debug while looking for a cause.",
    "logging.format": (
        "Form of the log: text on a terminal, journald's under systemd, JSON otherwise (auto). "
        "Choose one where another reader expects it."
    ),
    "enrollment": "How this machine proves who it is.",
    "enrollment.signature_encoding": (
        "How the 64-byte signature is written. Change it only if the service asks for it."
    ),
    "enrollment.nonce_encoding": (
        "How the challenge's nonce becomes the bytes that are signed. Change it only if the "
        "service asks for it."
    ),
    "enrollment.on_revoked": (
        "After a revocation stay up and collect nothing (stop), or enroll anew by itself "
        "(reenroll). Leave it at stop unless machines are revoked only to be moved."
    ),
    "heartbeat": "Signs of life.",
    "heartbeat.interval_seconds": (
        "Time between two heartbeats; each is moved by up to a tenth. Raise it on metered links."
    ),
    "commands": "How the service's requests arrive.",
    "commands.delivery": (
        "How commands come: by a stream where the service offers one, else by asking (auto). "
        "Choose poll where something on the way cuts long connections."
    ),
    "commands.poll_interval_seconds": (
        "Time between two questions when polling. Lower it for quicker answers, raise it on "
        "metered links."
    ),
    "schedule": "Reports without a request.",
    "schedule.network": (
        'Cron expression for network reports without a request, such as "0 4 * * *"; if it is '
        "not set, there are none."
    ),
    "schedule.application": (
        'Cron expression for application snapshots without a request, such as "*/30 * * * *"; '
        "if it is not set, there are none."
    ),
}
