"""The contract's statements about support, and the tests of each."""

from typing import Final

from tests.contract.service.coverage.rows import EXAMPLE, UNIT, Table, row

OPERATIONS: Final = UNIT + "support/test_operations.py::"
PERMISSIONS: Final = UNIT + "support/test_permissions.py::"
CONCURRENT_CALLS: Final = UNIT + "support/test_concurrent_calls.py::"
SCHEMA: Final = UNIT + "support/test_schema.py::"
MODEL: Final = (
    UNIT + "support/test_model.py::test_any_sequence_of_calls_with_a_token_behaves_as_the_model"
)
CONNECTED: Final = OPERATIONS + "test_a_token_is_inspected_confirmed_and_disconnected"
BODIES: Final = SCHEMA + "test_schema_and_service_accept_the_same_bodies"

SUPPORT: Final = (
    Table(
        "Support: operations",
        (
            row(
                "`support.contact` is the only operation of the facade that requires no body",
                EXAMPLE,
                OPERATIONS + "test_contact_can_be_called_without_a_body_or_with_an_empty_object",
                OPERATIONS + "test_contact_refuses_any_body_but_an_empty_object",
                "tests/contract/openapi/test_document.py::test_contact_is_the_only_operation_without_a_body",
            ),
            row(
                "`support.inspect`", EXAMPLE, CONNECTED, OPERATIONS + "test_inspect_changes_nothing"
            ),
            row("`support.confirm`", EXAMPLE, CONNECTED, MODEL),
            row("`support.disconnect`", EXAMPLE, CONNECTED, MODEL),
            row(
                "`token`: 43 characters of A-Z a-z 0-9 _ -, required",
                OPERATIONS + "test_the_refusal_of_an_invalid_token_does_not_contain_the_token",
                BODIES,
            ),
            row(
                "`organizationId`: at least one character, required by `support.confirm`",
                OPERATIONS + "test_a_confirmation_requires_an_organization",
                BODIES,
            ),
        ),
    ),
    Table(
        "Support: decisions that the contract leaves open",
        (
            row(
                "`support.contact` returns the channels and the caller's links",
                OPERATIONS + "test_contact_lists_the_channels_of_support",
                OPERATIONS + "test_links_are_listed_newest_first",
            ),
            row(
                "an unconfirmed token expires 24 hours after its creation",
                OPERATIONS + "test_an_unconfirmed_token_expires_after_a_day",
                UNIT + "support/test_command_line.py::"
                "test_a_token_is_printed_once_and_never_listed",
            ),
            row(
                "a repeated call gets the same reply, even if both calls run at the same time",
                OPERATIONS + "test_repeated_confirmations_and_disconnections_get_the_same_reply",
                CONCURRENT_CALLS + "test_concurrent_confirmations_of_a_token_get_the_same_reply",
                CONCURRENT_CALLS + "test_a_link_confirmed_and_ended_concurrently_is_ended",
            ),
            row(
                "a second organization cannot use a confirmed token",
                OPERATIONS
                + "test_the_refusal_of_a_used_token_does_not_name_the_organization_that_used_it",
                CONCURRENT_CALLS + "test_only_one_of_two_organizations_can_confirm_a_token",
                PERMISSIONS + "test_a_user_of_two_organizations_confirms_a_token_for_one_of_them",
            ),
            row(
                "an owner or manager of the whole organization is required, or a key with a write"
                " grant for all its locations",
                PERMISSIONS
                + "test_the_role_of_a_user_determines_whether_links_may_be_confirmed_and_ended",
                PERMISSIONS
                + "test_the_grant_and_locations_of_a_key_determine_whether_it_may_confirm",
                PERMISSIONS
                + "test_the_key_of_a_user_confirms_tokens_with_the_permissions_of_the_user",
                PERMISSIONS + "test_a_changed_role_applies_at_once",
            ),
            row(
                "a caller without access to a token gets no information about it",
                OPERATIONS + "test_links_of_other_organizations_are_treated_as_unknown_tokens",
                OPERATIONS + "test_callers_without_permission_cannot_distinguish_tokens",
            ),
            row(
                "a token is stored nowhere, and appears in no log",
                OPERATIONS + "test_tokens_are_neither_stored_nor_logged",
            ),
        ),
    ),
)
