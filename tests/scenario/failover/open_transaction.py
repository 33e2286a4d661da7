"""Locks the rows of all devices in a transaction that stays open, and prints a line.

Usage: python -m tests.scenario.failover.open_transaction URL

The service holds the same locks while it stores a batch of heartbeats. The program ends when its
standard input ends.
"""

import sys

from sqlalchemy import select
from sqlalchemy.orm import Session

from controlplane.storage.database import Database
from controlplane.storage.tables import Device


def _keep_locked(session: Session) -> None:
    session.execute(select(Device.position).with_for_update())
    print("locked", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    Database(sys.argv[1]).read(_keep_locked)
