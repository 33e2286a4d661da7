"""Names the service that usually uses a TCP port. A port gets this name if no better one is known.

The names are those of IANA's service registry, or names that are usual for the devices of a venue.
"""

from collectors.shared.addresses import RAW_PRINT_PORTS

_NAMES = {
    21: "FTP",
    22: "SSH",
    23: "Telnet",
    53: "DNS",
    80: "HTTP",
    88: "Kerberos",
    135: "Windows RPC",
    139: "NetBIOS",
    443: "HTTPS",
    445: "SMB",
    515: "LPD printing",
    548: "AFP",
    554: "RTSP",
    631: "IPP printing",
    1883: "MQTT",
    3306: "MySQL",
    3389: "Remote Desktop",
    5432: "PostgreSQL",
    5900: "VNC",
    6101: "Raw printing",
    8008: "HTTP (8008)",
    8009: "Google Cast",
    8043: "HTTPS (8043)",
    8080: "HTTP (8080)",
    8443: "HTTPS (8443)",
    10009: "Payment terminal",
    62078: "iPhone sync",
}


def port_name(port: int) -> str:
    """Return the usual service of a port, or ``port N``."""
    if port in RAW_PRINT_PORTS:
        return "Raw printing"
    return _NAMES.get(port, f"port {port}")
