"""Selects the printer that a user names by its id, name or address. No I/O."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from collectors.network.observations import KnownPrinter

_LISTED_MAX = 10


def find_named(known: Sequence[KnownPrinter], text: str) -> tuple[KnownPrinter, ...]:
    """Return the printers with this id, queue, name or address. Case is ignored."""
    name = text.strip().casefold()
    return tuple(printer for printer in known if name in map(str.casefold, _names(printer)))


def describe_unknown(known: Sequence[KnownPrinter], text: str) -> str:
    """Describe a name that no printer has, with the nearest name and the names of the printers.

    At most `_LISTED_MAX` printers are named.
    """
    problem = f"this machine has no printer {text!r}"
    if not known:
        return f"{problem}, nor any other printer"
    names = {name.casefold(): name for printer in known for name in _names(printer)}
    nearest = get_close_matches(text.strip().casefold(), names, n=1)
    question = f"; did you mean {names[nearest[0]]!r}?" if nearest else "."
    listed = [printer.name for printer in known[:_LISTED_MAX]]
    if len(known) > _LISTED_MAX:
        listed.append(f"{len(known) - _LISTED_MAX} more")
    return f"{problem}{question} Its printers: {', '.join(listed)}"


def _names(printer: KnownPrinter) -> Iterator[str]:
    yield from (printer.id, printer.name)
    queue = printer.id.partition(":")[2]
    yield from filter(None, (queue, printer.address, printer.host, *printer.addresses))
