"""Generates docs/service.md: ``make service-doc``."""

import asyncio
import logging
import tempfile
from pathlib import Path

from tests.contract.service.document import PATH, document_text
from tests.contract.service.examples import record_calls


def main() -> None:
    logging.disable()  # some of the calls make the service fail, and it would log that
    with tempfile.TemporaryDirectory() as folder:
        examples = asyncio.run(record_calls(Path(folder))).texts
    PATH.write_text(document_text(examples), encoding="utf-8")


if __name__ == "__main__":
    main()
