"""Printers of the LAN that answer over IPP."""

from controlplane.demo.lan.plan import IppPrinter


def lab_printer(uuid: str, *attributes: str, path: str = "/ipp/print") -> IppPrinter:
    """Return a printer with these IPP attributes. By default it is idle."""
    own = ("printer-make-and-model=Lab Printer 1", "printer-state=3")
    named = {attribute.partition("=")[0] for attribute in attributes}
    kept = (attribute for attribute in own if attribute.partition("=")[0] not in named)
    return IppPrinter(path, (f"printer-uuid=urn:uuid:{uuid}", *kept, *attributes))
