"""Checks of the configuration: the file, the API key, the trust anchors, the printers."""

import ssl
import stat
import sys
from pathlib import Path

from agent.adapters.storage.state import StateDirectory
from agent.config.credential import key_source
from agent.config.file import LoadedConfig, guessed_state_dir, load, review
from agent.config.model import Config
from agent.doctor.check import Outcome, fail, ok, skipped, unseen, warn
from agent.doctor.context import Context
from agent.errors import ConfigError, ConfigMissing, ConfigNotVisible, CredentialRefused
from agent.presentation.humanize import counted

_CORRECT = "correct the named settings, then run `venue-agent config check`"


def configuration(context: Context) -> Outcome:
    path = context.config_path
    try:
        loaded = load(Config, path, context.environment)
    except ConfigNotVisible as error:
        return unseen(str(error)).with_facts(is_hidden=True, state=_guessed_state(path))
    except ConfigMissing as error:
        problem, _, fix = str(error).partition(": ")
        return fail(problem, fix).with_facts(state=_guessed_state(path))
    except ConfigError as error:
        return fail("; ".join(error.problems), _CORRECT).with_facts(state=_guessed_state(path))
    state = StateDirectory(loaded.state_dir)
    return _check_loaded(path, context, loaded).with_facts(
        config=loaded.config, local=loaded.config, state=state
    )


def _guessed_state(path: Path | None) -> StateDirectory:
    return StateDirectory(guessed_state_dir(path))


def _check_loaded(path: Path | None, context: Context, loaded: LoadedConfig[Config]) -> Outcome:
    if problems := review(path, context.environment):
        return warn("; ".join(problems), _CORRECT)
    variable_count = len(set(loaded.origins.values()) - {str(loaded.path)})
    variables = counted(variable_count, "environment variable")
    more = f" and {variables}" if variable_count and loaded.path else ""
    return ok(f"{loaded.path or 'environment'}{more}")


def api_key(context: Context) -> Outcome:
    key_file = context.service.api_key_file
    source = key_source(key_file, context.config_path, context.environment)
    try:
        key = source.read()
    except CredentialRefused as error:
        if source.is_closed():
            return unseen(f"{source.describe()} cannot be read by this user")
        return fail(
            str(error), "create a key with a write grant, and store it where the agent reads it"
        )
    outcome = ok(f"read from {source.describe()}")
    if source.file is not None and (mode := _mode_for_everyone(source.file)):
        detail = f"every user has access to {source.describe()} ({mode})"
        outcome = warn(detail, f"run `chmod 600 {source.file}`")
    return outcome.with_facts(api_key=key)


def trust_anchors(context: Context) -> Outcome:
    ca_file = context.service.ca_file
    if not ca_file:
        return ok("the operating system's certificates")
    try:
        ssl.create_default_context().load_verify_locations(ca_file)
    except OSError as error:
        is_invalid = isinstance(error, ssl.SSLError)
        reason = "it contains no PEM certificate" if is_invalid else error.strerror
        return fail(f"service.ca_file {ca_file}: {reason}", "correct service.ca_file")
    return ok(f"the operating system's certificates, and {ca_file}")


def printers(context: Context) -> Outcome:
    local = context.local
    if local is None or not local.printers:
        return skipped("none are configured")
    ids = [printer.id for printer in local.printers]
    duplicates = sorted({name for name in ids if ids.count(name) > 1})
    if duplicates:
        return warn(
            f"duplicate id: {', '.join(duplicates)}", "give each [[printers]] entry its own id"
        )
    incomplete = [p.id for p in local.printers if p.transport == "network" and not p.address]
    if incomplete:
        return warn(f"no address: {', '.join(incomplete)}", 'add address = "host:port" to each')
    return ok(f"{len(ids)} configured")


def _mode_for_everyone(path: Path) -> str | None:
    """Return a file's mode as text if it grants every user a right; otherwise None."""
    if sys.platform == "win32":
        return None
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None
    return f"mode {mode:04o}" if mode & stat.S_IRWXO else None
