"""Checks of what the operator wrote: the file, the API key's place, the trust anchors."""

import ssl
import stat
import sys
from pathlib import Path

from agent.adapters.storage.state import StateDirectory
from agent.config.credential import ApiKeySource, key_place
from agent.config.file import guessed_state_dir, load, review
from agent.config.model import Config, LocalConfig
from agent.doctor.check import Finding, fail, ok, skipped, unseen, warn
from agent.doctor.context import Context
from agent.errors import ConfigError, ConfigMissing, ConfigNotVisible, CredentialRefused

OTHERS: int = stat.S_IRWXO


def configuration(context: Context) -> Finding:
    path = context.config_path
    try:
        loaded = load(Config, path, context.environment)
    except ConfigNotVisible as error:
        context.is_hidden = True
        context.state = StateDirectory(guessed_state_dir(path))
        return unseen(str(error))
    except ConfigMissing as error:
        context.state = StateDirectory(guessed_state_dir(path))
        found, _, cure = str(error).partition(": ")
        return fail(found, cure)
    except ConfigError as error:
        context.state = StateDirectory(guessed_state_dir(path))
        return fail("; ".join(error.problems), "correct what is named, then `config check`")
    context.config = context.local = loaded.config
    context.state = StateDirectory(loaded.state_dir)
    if doubts := review(path, context.environment):
        return warn("; ".join(doubts), "correct what is named, then `config check`")
    overrides = len(set(loaded.origins.values()) - {str(loaded.path)})
    more = f", {overrides} from the environment" if overrides and loaded.path else ""
    return ok(f"{loaded.path or 'environment'}{more}")


def api_key(context: Context) -> Finding:
    source = _key_source(context)
    try:
        context.api_key = source.read()
    except CredentialRefused as error:
        if source.is_closed():
            return unseen(f"{source.describe()} is closed to this user")
        return fail(str(error), "create a key with a write grant and put it into that place")
    if source.file is not None and (found := _too_open(source.file, OTHERS)):
        return warn(f"{source.describe()} can be read by everybody ({found})", "chmod 600 it")
    return ok(f"read from {source.describe()}")


def trust_anchors(context: Context) -> Finding:
    service = context.config.service if context.config else None
    if service is None or not service.ca_file:
        return ok("the operating system's")
    try:
        ssl.create_default_context().load_verify_locations(service.ca_file)
    except OSError as error:
        is_content = isinstance(error, ssl.SSLError)
        reason = "it holds no PEM certificate" if is_content else error.strerror
        return fail(f"service.ca_file {service.ca_file}: {reason}", "correct service.ca_file")
    return ok(f"the operating system's and {service.ca_file}")


def printers(context: Context) -> Finding:
    local: LocalConfig | None = context.local
    if local is None or not local.printers:
        return skipped("none are configured")
    ids = [printer.id for printer in local.printers]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        return warn(f"id used twice: {', '.join(twice)}", "give each [[printers]] entry its own id")
    lost = [p.id for p in local.printers if p.transport == "network" and not p.address]
    if lost:
        return warn(f"no address: {', '.join(lost)}", 'add address = "host:port" to each')
    return ok(f"{len(ids)} configured")


def _key_source(context: Context) -> ApiKeySource:
    service = context.config.service if context.config else None
    named = service.api_key_file if service else ""
    return key_place(named, context.config_path, context.environment)


def _too_open(path: Path, mask: int) -> str | None:
    """Return a file's mode as text when it gives rights in ``mask``."""
    if sys.platform == "win32":
        return None
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None
    return f"mode {mode:04o}" if mode & mask else None
