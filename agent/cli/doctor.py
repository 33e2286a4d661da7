"""`venue-agent doctor`: checks everything that the agent needs, with a fix for each problem."""

import argparse
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from agent.adapters.accounts.privileges import step_down, writer_of
from agent.cli.terminal.doctor_view import show
from agent.cli.terminal.options import add_config_and_json_options
from agent.cli.terminal.screen import Screen, print_json
from agent.config.file import load
from agent.config.model import LocalConfig
from agent.config.rights import how_to_run_as_root, with_config
from agent.doctor.check import CheckResult
from agent.doctor.context import Context
from agent.doctor.document import document_of
from agent.doctor.registry import BEFORE_STEP_DOWN, CHECKS
from agent.doctor.root_causes import all_visible, any_failed
from agent.doctor.runner import THREAD_PREFIX, TOTAL_S, run_checks
from agent.errors import ConfigError

HEALTHY, UNHEALTHY, NOT_VISIBLE = 0, 1, 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_and_json_options(parser)
    parser.add_argument(
        "--bundle",
        type=Path,
        metavar="FILE.zip",
        help="write a file for support; it has a fresh report of each kind, and no secrets",
    )
    parser.add_argument(
        "--no-collect",
        dest="collect",
        action="store_false",
        help="with --bundle: do not collect fresh reports",
    )
    parser.add_argument("--all", action="store_true", help="also show skipped checks")


def run(options: argparse.Namespace) -> int:
    """Return the exit code.

    1 if a check failed. If none failed: 3 if this user is not permitted to see the results of some
    checks, otherwise 0.
    """
    if options.bundle is None:
        return _examine(options, None)
    # The bundle is written with the rights of the user who runs doctor.
    with writer_of(options.bundle) as write:
        return _examine(options, write)


def _examine(options: argparse.Namespace, write: Callable[[bytes], None] | None) -> int:
    """Run the checks. ``write`` writes the bundle. It is None if no bundle is requested."""
    context = Context(config_path=options.config)
    start_s = time.monotonic()
    known_results = _check_before_step_down(context, for_bundle=write is not None)
    remaining_s = TOTAL_S - (time.monotonic() - start_s)
    results = run_checks(CHECKS, context, total_s=remaining_s, known_results=known_results)
    duration_s = time.monotonic() - start_s
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    document = document_of(results, made_at=made_at, duration_s=duration_s)
    if write is not None:
        from agent.cli.terminal.support_bundle import new_case_id

        document["caseId"] = new_case_id()
    if options.json:
        print_json(document)
    else:
        show(results, duration_s, Screen(), with_skipped=options.all)
        if not all_visible(results):
            advice = with_config(how_to_run_as_root("doctor"))
            sys.stdout.write(f"to see what is not visible to you: {advice}\n")
    if write is not None:
        from agent.cli.terminal.support_bundle import make_bundle

        make_bundle(options.bundle, context, results, document, write, with_reports=options.collect)
    code = _exit_code(results)
    _exit_if_threads_hang(code)
    return code


def _check_before_step_down(context: Context, *, for_bundle: bool) -> tuple[CheckResult, ...]:
    """Check the configuration and the key with the rights of the user who runs doctor.

    For a bundle, also read the configuration's text and the log with these rights. If this user is
    root, the process continues as the owner of the state directory afterwards.
    """
    results = run_checks([check for check in CHECKS if check.name in BEFORE_STEP_DOWN], context)
    if for_bundle:
        from agent.doctor.bundle import read_config
        from agent.doctor.logs import read_logs

        with contextlib.suppress(ConfigError):
            # LocalConfig, because reports do not need the section [service].
            context.local = context.local or load(LocalConfig, context.config_path).config
        context.config_text, context.log_text = read_config(context.config_path), read_logs()
    if context.state is not None:
        step_down(context.state.path)
    return results


def _exit_code(results: Sequence[CheckResult]) -> int:
    if any_failed(results):
        return UNHEALTHY
    return HEALTHY if all_visible(results) else NOT_VISIBLE


def _exit_if_threads_hang(code: int) -> None:
    """Exit at once if a check timed out.

    The check may hang in a name look-up, which asyncio runs in a thread of its own. When Python
    exits, it would wait for this thread.
    """
    if any(thread.name.startswith(THREAD_PREFIX) for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
