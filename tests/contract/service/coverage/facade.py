"""The contract's statements about all operations: rules, credentials, errors, limits, versions."""

from typing import Final

from tests.contract.service.coverage.devices import EDGES, PAYLOAD_EDGES
from tests.contract.service.coverage.rows import DOCUMENT_TESTS, UNIT, Table, not_observable, row

AUTH: Final = UNIT + "web/test_auth.py::"
SIGN_IN: Final = UNIT + "accounts/test_sign_in.py::"
SESSION: Final = UNIT + "accounts/test_facade.py::"
PROFILE: Final = UNIT + "accounts/test_profile.py::"
LIVE: Final = UNIT + "accounts/test_live_permissions.py::"
OAUTH: Final = UNIT + "accounts/oauth/"
OFFICIAL_OAUTH: Final = (
    "tests/contract/agent_protocol/test_official_oauth_client.py::"
    "test_the_official_client_signs_in_refreshes_its_token_and_can_only_read"
)
OPENAPI: Final = "tests/contract/openapi/test_document.py::"
NUMBERS: Final = DOCUMENT_TESTS + "test_amounts_timestamps_and_numbers_have_the_documented_form"
OURS: Final = "not documented; decided by this project: [controlplane.md](controlplane.md)"

FACADE: Final = (
    Table(
        "Facade: rules",
        (
            row("only `POST` is served", AUTH + "test_only_post_is_served"),
            row(
                "paths: `/api/public/v1/<group>/<procedure>`; operation ids: `<group>.<procedure>`",
                AUTH + "test_all_operations_of_the_contract_are_served",
                OPENAPI + "test_the_openapi_document_has_the_operations_of_the_contract",
            ),
            row(
                "the body is JSON",
                AUTH + "test_only_bodies_with_the_media_type_of_json_are_accepted",
            ),
            row(
                "success is 200 with a JSON body",
                DOCUMENT_TESTS + "test_success_is_200_with_json",
                UNIT
                + "remote_control/test_schema.py::test_replies_that_violate_the_schema_do_not_fit",
            ),
            row(
                "every operation requires an object as its body, except `support.contact`, which"
                " has no body or an empty object",
                AUTH + "test_every_operation_requires_a_json_object",
                UNIT
                + "support/test_operations.py::test_contact_refuses_any_body_but_an_empty_object",
                UNIT + "support/test_operations.py::"
                "test_contact_can_be_called_without_a_body_or_with_an_empty_object",
            ),
            row("money: integers in fields whose names end in `Cents`", NUMBERS),
            row("timestamps: ISO 8601 date-times", NUMBERS),
            row("dates: ISO 8601 full dates", NUMBERS),
            row(
                "deprecated operations name their successors",
                OPENAPI + "test_deprecated_operations_are_marked_and_document_their_headers",
                UNIT + "analytics/test_operations.py::"
                "test_deprecated_operations_name_their_successor",
            ),
        ),
    ),
    Table(
        "Facade: who may call",
        (
            row(
                "the session cookie `<auth_lib>.session_token` is issued at sign-in",
                SIGN_IN + "test_sign_in_returns_a_session_cookie",
                SIGN_IN + "test_the_names_of_the_cookie_are_those_of_the_contract",
                SESSION + "test_a_session_cookie_authorizes_calls_of_the_facade",
            ),
            row(
                "over TLS, its name is `__Secure-<auth_lib>.session_token`",
                SIGN_IN + "test_over_tls_only_the_secure_cookie_is_accepted",
            ),
            row(
                "API keys are sent as `Authorization: Bearer`",
                AUTH + "test_every_path_requires_a_key",
                AUTH + "test_a_revoked_key_returns_401",
            ),
            row(
                "API keys are created in the profile and have a fixed prefix",
                PROFILE + "test_a_new_key_is_returned_once_and_works",
            ),
            row(
                "an API key is read-only unless it has a write grant",
                AUTH + "test_a_read_only_key_cannot_call_operations_that_write",
                LIVE + "test_a_key_can_write_only_if_the_key_and_its_owner_can_write",
            ),
            row(
                "access is limited by the caller's current venue permissions",
                UNIT
                + "remote_control/test_operator.py::test_a_key_has_access_only_to_its_locations",
                SESSION + "test_a_session_is_limited_to_the_locations_of_the_membership",
                LIVE + "test_a_key_loses_the_locations_that_its_owner_loses",
                LIVE + "test_the_key_of_a_removed_member_is_refused_after_the_next_poll",
                LIVE + "test_the_session_of_a_removed_member_ends_at_once",
            ),
            not_observable(
                "how permissions and grants are assigned", "ours: [accounts.md](accounts.md)"
            ),
            row(
                "AI assistants sign in with the authorization code flow of OAuth 2.0",
                OFFICIAL_OAUTH,
                OAUTH + "test_flow.py::test_a_client_reads_with_the_permissions_of_its_user",
                OAUTH + "test_codes.py::test_only_the_authorization_code_flow_is_supported",
            ),
            row(
                "OAuth has endpoints below `/api/auth/oauth2`, a metadata document and no scopes",
                OAUTH + "test_flow.py::test_the_metadata_of_the_authorization_server_is_valid",
                OAUTH + "test_flow.py::test_registration_returns_the_metadata_that_was_accepted",
            ),
            row(
                "OAuth tokens can only read, and only the agent protocol accepts them",
                OFFICIAL_OAUTH,
                OAUTH + "test_tokens.py::test_a_token_is_accepted_only_by_the_agent_protocol",
                OAUTH + "test_tokens.py::test_the_end_of_a_membership_revokes_its_tokens",
            ),
        ),
    ),
    Table(
        "Facade: limits",
        (
            row("`challenge`: the lengths in the table `Devices: fields of the bodies`", EDGES),
            row(
                "`capabilities` of devices in replies: at most 32, each of 1–128 characters",
                UNIT
                + "remote_control/test_schema.py::test_replies_that_violate_the_schema_do_not_fit",
                EDGES,
            ),
            row("`enroll.signature`: 8–128 characters", EDGES),
            row("cursors in requests: at most 128 characters", EDGES),
            row(
                "cursors that the service returns have at most 128 characters",
                UNIT + "remote_control/test_operator.py::test_devices_are_listed_page_by_page",
            ),
            row(
                "payloads: strings of at most 1024 characters; lists of at most 2, 34, 64, 128 or"
                " 256 items",
                PAYLOAD_EDGES,
            ),
            row(
                "lengths are counted in UTF-16 code units (ours)",
                PAYLOAD_EDGES,
                "tests/contract/test_limits.py::test_lengths_are_utf16_code_units",
            ),
            row(
                "support tokens: 43 characters of A-Z a-z 0-9 _ -",
                UNIT + "support/test_operations.py::"
                "test_the_refusal_of_an_invalid_token_does_not_contain_the_token",
            ),
            row("ports: 1–65535", PAYLOAD_EDGES),
            row("integers: ±9007199254740991", PAYLOAD_EDGES, NUMBERS),
            row(
                "rate limit (not documented; ours)",
                AUTH + "TestRate::test_too_many_calls_return_retry_after",
            ),
            row(
                "maximum size of a body (not documented; ours)",
                AUTH
                + "TestBodyLimits::test_a_body_with_a_content_length_above_the_limit_is_refused",
            ),
        ),
    ),
    Table(
        "Facade: versions, errors, events",
        (
            row(
                "paths contain `v1`, and the version of the OpenAPI document is `v1`",
                OPENAPI + "test_version_and_paths_of_the_openapi_document_are_v1",
            ),
            row("payloads have `version` 2 or 1", PAYLOAD_EDGES),
            row(
                "`createRequest` returns `version` 1",
                UNIT + "remote_control/test_operator.py::test_a_request_is_queued_for_the_binding",
            ),
            row(
                "status and body of refusals (not documented; ours: see Refusals above)",
                OPENAPI + "test_the_documentation_lists_every_code_with_its_statuses",
                DOCUMENT_TESTS + "test_the_document_matches_the_service",
            ),
            not_observable("events", OURS),
            not_observable(
                "report and document downloads", "the contract has no operation for them"
            ),
            not_observable("what `revoke` stores in addition to `revokedAt`", OURS),
        ),
    ),
)
