"""The contract's statements about the agent protocol (MCP for AI assistants), and their tests."""

from typing import Final

from tests.contract.service.coverage.facade import OFFICIAL_OAUTH
from tests.contract.service.coverage.rows import EXAMPLE, UNIT, Table, not_observable, row

AGENTS_UNIT: Final = UNIT + "agent_protocol/"
ENVELOPE: Final = AGENTS_UNIT + "test_envelope.py::"
PROTOCOL: Final = AGENTS_UNIT + "test_protocol.py::"
ADMISSION: Final = AGENTS_UNIT + "test_admission.py::"
TOOLS: Final = AGENTS_UNIT + "test_tools.py::"
MISTAKES: Final = (
    AGENTS_UNIT + "test_malformed.py::test_an_invalid_request_gets_the_documented_error_code"
)
ANY_ID: Final = ENVELOPE + "test_the_reply_has_the_string_or_integer_id_of_the_request"
LISTED: Final = PROTOCOL + "test_ping_and_tools_list_require_no_initialize"

AGENTS: Final = (
    Table(
        "Agent protocol: envelope",
        (
            row("`jsonrpc` is 2.0 and `method` is a string; both are required", ANY_ID, MISTAKES),
            row("`id` is a string or an integer", ANY_ID, MISTAKES),
            row(
                "`params` is an optional object with any keys",
                ENVELOPE + "test_params_are_optional_and_can_have_any_keys",
                MISTAKES,
            ),
            row(
                "`_meta` can contain `progressToken` and `…/related-task`",
                ENVELOPE + "test_params_are_optional_and_can_have_any_keys",
                MISTAKES,
            ),
            row("the request has no other keys", MISTAKES),
            row("a success has `jsonrpc`, `id` and the object `result`", ANY_ID, EXAMPLE),
            row(
                "`result._meta` can name the server",
                PROTOCOL + "test_a_request_that_contains_its_protocol_version_is_served",
            ),
            row(
                "an error has `code`, `message`, `data`, and `id` if it is known", MISTAKES, EXAMPLE
            ),
        ),
    ),
    Table(
        "Agent protocol: operation",
        (
            row("`POST /api/mcp/v1` replies with 200 and a result or an error", EXAMPLE, ANY_ID),
            row(
                "the operation id is `callMcp`",
                ADMISSION + "test_metrics_count_calls_by_operation_and_status",
            ),
            row(
                "methods other than `POST` get 405 `{error}`",
                EXAMPLE,
                PROTOCOL + "test_only_post_is_served",
            ),
            row(
                "no stream is opened, and no state is kept between requests",
                LISTED,
                PROTOCOL + "test_only_post_is_served",
            ),
            row(
                "`tools/list` returns each tool with the schemas of its arguments and its result",
                LISTED,
            ),
            row(
                "`tools/call` can call each of the seven tools",
                EXAMPLE,
                "tests/contract/agent_protocol/test_official_client.py::"
                "test_the_official_client_lists_and_calls_all_seven_tools",
            ),
            row(
                "each call checks the credential, the memberships and the access again",
                ADMISSION + "test_a_revoked_key_cannot_call_tools_even_if_it_is_cached",
                ADMISSION + "test_a_removed_member_cannot_call_tools_even_if_the_key_is_cached",
                ADMISSION + "test_a_cached_key_cannot_write_after_its_write_grant_is_revoked",
                TOOLS + "test_a_foreign_location_is_refused_whether_or_not_it_exists",
                TOOLS + "test_a_key_of_another_organization_gets_no_rows",
            ),
            row(
                "401 `{error}`: `WWW-Authenticate` contains the URL of the resource's metadata",
                EXAMPLE,
                PROTOCOL + "test_a_refusal_without_a_valid_credential_contains_the_metadata_url",
                "tests/contract/agent_protocol/test_official_oauth_client.py::"
                "test_an_unknown_token_is_refused_with_the_address_of_the_metadata",
            ),
            row(
                "API keys are accepted",
                TOOLS + "test_a_read_only_key_can_call_the_tools_that_read",
                TOOLS + "test_only_a_key_with_a_write_grant_for_all_locations_changes_the_catalog",
            ),
            row(
                "session cookies are not accepted",
                UNIT + "accounts/test_sign_in.py::test_the_agent_protocol_refuses_session_cookies",
            ),
            row("OAuth tokens are accepted", OFFICIAL_OAUTH),
            not_observable(
                "arguments and results of the tools",
                "not documented; decided by this project: [agent-protocol.md](agent-protocol.md)",
            ),
        ),
    ),
)
