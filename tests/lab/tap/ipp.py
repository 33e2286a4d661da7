"""Printers of the LAN that answer over IPP."""

from controlplane.demo.lan.plan import IppPrinter


def lab_printer(uuid: str, *attributes: str, path: str = "/ipp/print") -> IppPrinter:
    """Return a printer with these IPP attributes. By default it is idle."""
    defaults = ("printer-make-and-model=Lab Printer 1", "printer-state=3")
    given_names = {attribute.partition("=")[0] for attribute in attributes}
    used_defaults = (
        attribute for attribute in defaults if attribute.partition("=")[0] not in given_names
    )
    return IppPrinter(path, (f"printer-uuid=urn:uuid:{uuid}", *used_defaults, *attributes))
