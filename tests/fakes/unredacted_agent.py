"""The agent with redaction switched off: `python -m tests.fakes.unredacted_agent COMMAND …`.

A search must find the planted secrets in this agent's output. Otherwise, an empty result for the
real agent would have no meaning.
"""

import sys

from agent.adapters import collector_process
from agent.cli import main as command_line
from agent.doctor import bundle
from agent.redaction.redactor import Redactor


def switch_off_redaction() -> None:
    Redactor.redact = lambda _self, text: text  # type: ignore[method-assign]
    Redactor.mask_known = lambda _self, text: text  # type: ignore[method-assign]
    Redactor.redact_value = lambda _self, _key, value: value  # type: ignore[method-assign]
    bundle.redact_configuration = lambda text, _redactor: text
    collector_process.without_secrets = dict


if __name__ == "__main__":
    switch_off_redaction()
    sys.exit(command_line.main())
