"""Checks of the state directory: rights, free space, identity key, device record, journal.

The checks leave no files behind.
"""

import contextlib
import errno
import os
import shutil
import sqlite3
import stat
import sys
from pathlib import Path
from typing import Final

from agent.adapters import machine
from agent.adapters.identity import KEY_NAME
from agent.adapters.service_manager.last_exit import NAME as LAST_EXIT
from agent.adapters.storage.database import FILES, connect_to_read
from agent.adapters.storage.database import NAME as DATABASE
from agent.adapters.storage.device_record import NAME as RECORD
from agent.adapters.storage.device_record import DeviceRecordFile
from agent.adapters.storage.printer_memory import NAME as PRINTERS
from agent.adapters.storage.state import LOCK_NAME
from agent.adapters.storage.status_file import NAME as STATUS
from agent.adapters.storage.visibility import is_closed
from agent.config.model import is_privileged
from agent.doctor.check import Outcome, fail, ok, skipped, unseen, warn
from agent.doctor.context import Context
from agent.presentation.humanize import counted

FREE_BYTES_FAIL: Final = 8 * 2**20
"""With less free space than this, writing the journal may fail."""
FREE_BYTES_WARN: Final = 128 * 2**20
PROBE_BYTES: Final = 64 * 1024
FREE_INODES_FAIL: Final = 64
_RESTART_FIX: Final = "restart the agent: it moves the file to quarantine and creates a new one"


def state_directory(context: Context) -> Outcome:
    path = _path(context)
    if context.is_hidden:
        return unseen("this user cannot read the configuration, which may name another directory")
    if is_closed(path):
        return unseen(f"{path} is closed to this user")
    if not path.exists() and not path.is_symlink():
        return _check_absent(path, context)
    if not path.is_dir():
        return fail(f"{path} is not a directory", "remove it, or correct device.state_dir")
    return _check_safety(context) or _check_writable(path)


def _check_writable(path: Path) -> Outcome:
    error_number = _write_error(path)
    if error_number in {0, errno.ENOSPC}:
        return ok(str(path))  # `disk_space` reports a full disk
    if error_number in {errno.EACCES, errno.EPERM} and not _is_owner_or_root(path):
        return ok(f"{path}, which belongs to another user")
    return fail(
        f"{path} cannot be written: {os.strerror(error_number)}",
        f"make {path} writable for the agent's user; a read-only file system needs a repair",
    )


def _check_absent(path: Path, context: Context) -> Outcome:
    parent = next((p for p in path.parents if p.exists()), Path("/"))
    if parent.is_dir() and os.access(parent, os.W_OK):
        return ok(f"{path} will be created at the first start")
    if context.is_system_agent and not is_privileged():
        return unseen(f"{path} will be created at the service's first start")
    return fail(f"{path} cannot be created: {parent} is not writable", f"create {path}")


def disk_space(context: Context) -> Outcome:
    if context.is_hidden:
        return unseen("this user cannot read the configuration, which may name another disk")
    path = next((p for p in (_path(context), *_path(context).parents) if p.exists()), Path("/"))
    free = shutil.disk_usage(path).free
    text = f"{free / 2**20:,.0f} MiB free"
    if free < FREE_BYTES_FAIL:
        return fail(f"only {text}: requests and reports cannot be stored", f"make space at {path}")
    if free < FREE_BYTES_WARN:
        return warn(f"only {text}", f"make space at {path}, or reduce limits.outbox_max_bytes")
    if hasattr(os, "statvfs"):
        inodes = os.statvfs(path)
        # f_files is 0 on file systems without a fixed number of inodes.
        if inodes.f_files and inodes.f_favail < FREE_INODES_FAIL:
            return fail(f"only {inodes.f_favail} inodes free", f"remove files at {path}")
    return ok(text)


def key_permissions(context: Context) -> Outcome:
    key = _path(context) / KEY_NAME
    try:
        mode = stat.S_IMODE(key.stat().st_mode)
    except FileNotFoundError:
        return skipped("there is no key yet: enrollment creates it")
    except OSError:
        return unseen(f"{key} cannot be accessed")
    if sys.platform == "win32":
        return skipped("the key has the rights of its directory, which `service install` restricts")
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        detail = f"other users have access to {key} (mode {mode:04o})"
        return fail(detail, f"run `chmod 600 {key}`")
    return ok(f"private (mode {mode:04o})")


def device_record(context: Context) -> Outcome:
    path = _path(context) / RECORD
    if context.state is None or not os.access(path, os.R_OK):
        return _not_readable(path)
    record = DeviceRecordFile(context.state).peek()
    if record is None:
        return warn(f"{path} is damaged", _RESTART_FIX)
    present_fingerprint, stored_fingerprint = machine.fingerprint(), record.fingerprint
    outcome = ok(f"install id {record.legacy_install_id}")
    if present_fingerprint and stored_fingerprint and present_fingerprint != stored_fingerprint:
        fix = "restart the agent: it enrolls with a new identity"
        outcome = warn("this disk was copied from another machine", fix)
    return outcome.with_facts(record=record)


def journal(context: Context) -> Outcome:
    path = _path(context) / DATABASE
    if context.state is None or not os.access(path, os.R_OK):
        return _not_readable(path)
    try:
        with contextlib.closing(connect_to_read(context.state, timeout_s=1)) as database:
            verdict = database.execute("PRAGMA quick_check(1)").fetchone()[0]
            rows = database.execute("SELECT count(*) FROM requests").fetchone()[0]
    except sqlite3.Error as error:
        return warn(f"{path}: {error}", _RESTART_FIX)
    if verdict != "ok":
        return warn(f"{path} is damaged", _RESTART_FIX)
    return ok(counted(rows, "request"))


def _check_safety(context: Context) -> Outcome | None:
    """Return a failure if other users could change the directory or replace a file in it.

    Files that this user cannot read are ignored: other checks report them.

    Raises:
        StateError: A file of the agent is unsafe, for example because another user owns it.
    """
    with contextlib.suppress(OSError):
        if context.state is not None:
            if (weakness := context.state.weakness()) is not None:
                return fail(weakness.detail, weakness.fix)
            context.state.require_own(
                KEY_NAME, RECORD, PRINTERS, STATUS, LOCK_NAME, LAST_EXIT, *FILES
            )
            context.state.require_quarantine()
    return None


def _path(context: Context) -> Path:
    return context.state.path if context.state else Path("/nonexistent")


def _not_readable(path: Path) -> Outcome:
    with contextlib.suppress(OSError):
        if path.exists():
            return unseen(f"{path} cannot be read")
    return skipped("there is none yet: it is created at the first start")


def _is_owner_or_root(path: Path) -> bool:
    return sys.platform == "win32" or os.geteuid() in {0, path.stat().st_uid}


def _write_error(path: Path) -> int:
    """Try to write a file without a name (open(2), O_TMPFILE). Return the errno; 0 on success.

    Where such files are not supported, only the access rights are checked.
    """
    rights_error = 0 if os.access(path, os.W_OK) else errno.EACCES
    if not hasattr(os, "O_TMPFILE"):
        return rights_error
    try:
        handle = os.open(path, os.O_TMPFILE | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "wb", buffering=0) as file:
            file.write(bytes(PROBE_BYTES))
    except OSError as error:
        return rights_error if error.errno == errno.EOPNOTSUPP else error.errno or errno.EIO
    return 0
