"""The contract's statements about the device operations (remoteControl), and the tests of each."""

from typing import Final

from tests.contract.service.coverage.rows import EVERY_FIELD, EXAMPLE, UNIT, Row, Table, row

REMOTE: Final = UNIT + "remote_control/"
EDGES: Final = (
    REMOTE + "test_fields.py::test_a_field_accepts_permitted_values_and_refuses_forbidden_values"
)
REQUIRED: Final = (
    REMOTE
    + "test_fields.py::test_the_service_requires_exactly_the_fields_that_the_contract_requires"
)
ENROLLMENT: Final = REMOTE + "test_enrollment.py::"
DELIVERY: Final = UNIT + "devices/requests/test_delivery.py::"
SUBMISSION: Final = REMOTE + "test_submission.py::"
OPERATOR: Final = REMOTE + "test_operator.py::"
OPEN_POINTS: Final = REMOTE + "test_points_that_the_contract_leaves_open.py::"
TRACKER: Final = UNIT + "web/webhooks/test_tracker.py::"
STRICT_REPLIES: Final = (
    REMOTE + "test_schema.py::test_a_reply_with_a_missing_or_additional_field_does_not_fit"
)
STRICT_RECORDS: Final = (
    REMOTE + "test_schema.py::test_a_record_with_a_missing_or_additional_field_does_not_fit"
)
STORED: Final = SUBMISSION + "test_a_stored_report_equals_the_submitted_one"
ACKNOWLEDGED: Final = DELIVERY + "test_acknowledgements_change_the_status_of_the_request"
EXPIRED: Final = (
    OPERATOR + "test_a_request_past_its_expiry_is_read_as_expired_before_the_sweep_stores_it"
)
TRANSITIONS: Final = (
    UNIT
    + "devices/requests/test_lifecycle.py::test_the_transitions_are_those_of_the_expected_table"
)
READING: Final = UNIT + "devices/test_reading.py::test_reading_operations_change_nothing"
PAYLOAD: Final = REMOTE + "test_payload_edges.py::"
PAYLOAD_EDGES: Final = PAYLOAD + "test_a_payload_is_accepted_at_each_limit_and_refused_beyond_it"
PERMITTED: Final = PAYLOAD + "test_any_payload_that_the_schema_permits_is_accepted"


def _field(statement: str) -> Row:
    return row(statement, EDGES, REQUIRED)


def _shape(statement: str, *also: str) -> Row:
    return row(statement, PAYLOAD_EDGES, PERMITTED, EVERY_FIELD, *also)


DEVICES: Final = (
    Table(
        "Devices: operations",
        (
            row(
                "`challenge` → `challengeId`, `nonce`",
                EXAMPLE,
                ENROLLMENT + "test_a_challenge_expires",
            ),
            row(
                "`enroll` → the enrolment record",
                EXAMPLE,
                ENROLLMENT + "test_an_enrollment_stores_the_values_of_the_device",
            ),
            row(
                "`current` → the enrolment record, or null; read-only",
                EXAMPLE,
                ENROLLMENT + "test_current_returns_the_newest_binding_of_the_key",
                ENROLLMENT + "test_current_is_null_before_enrolment",
                READING,
            ),
            row(
                "`heartbeat` → `lastSeenAt`",
                EXAMPLE,
                ENROLLMENT + "test_heartbeats_make_a_device_online",
            ),
            row(
                "`acknowledge` → `accepted` true, and the `status` that was sent",
                EXAMPLE,
                ACKNOWLEDGED,
            ),
            row(
                "`submitResult` → `reportId`, `requestId` or null, `outcome`, `trackerStatus`",
                EXAMPLE,
                STORED,
                SUBMISSION + "test_a_report_may_come_without_a_request",
            ),
            row(
                "`onCommands` (the form of the reply is ours)",
                EXAMPLE,
                DELIVERY + "test_a_request_is_delivered_until_it_runs",
                UNIT + "web/test_commands_stream.py::"
                "test_a_stream_sends_waiting_requests_first_and_new_requests_at_once",
            ),
            row(
                "`createRequest` → `version` 1, ids, `kind`, `expiresAt`, `status` queued",
                EXAMPLE,
                OPERATOR + "test_a_request_is_queued_for_the_binding",
            ),
            row(
                "`listDevices` → `devices`, `nextCursor` or null; read-only",
                EXAMPLE,
                OPERATOR + "test_devices_are_listed_page_by_page",
                READING,
            ),
            row(
                "`deviceDetail` → `device`, `requests`, `reports`, `nextCursor` or null; read-only",
                EXAMPLE,
                OPERATOR + "test_history_is_listed_newest_first_with_one_cursor",
                READING,
            ),
            row("`reportDetail` → the report; read-only", EXAMPLE, STORED, READING),
            row(
                "`revoke` → `revoked` true",
                EXAMPLE,
                OPERATOR + "test_a_second_revocation_changes_nothing",
            ),
            row(
                "the four read-only operations need no write grant, the other eight need one",
                UNIT + "web/test_auth.py::"
                "test_only_the_reading_operations_of_the_contract_need_no_write_grant",
                READING,
            ),
        ),
    ),
    Table(
        "Devices: fields of the bodies",
        (
            _field("`challenge.instanceId`: UUID, required"),
            row(
                "`challenge.publicKey`: exactly 88 characters, required",
                EDGES,
                REQUIRED,
                REMOTE + "test_signatures.py::test_a_public_key_of_88_hexadecimal_digits_is_parsed",
                ENROLLMENT + "test_the_refusal_of_a_key_that_is_not_ed25519_names_the_field",
            ),
            _field("`challenge.platform`: one of five words, required"),
            _field("`challenge.locationId`, `legacyInstallId`: 1–128 characters, required"),
            row(
                "`challenge.appVersion`: at most 128 characters, optional",
                EDGES,
                REQUIRED,
                ENROLLMENT + "test_an_app_version_may_be_left_out",
            ),
            _field("`challenge.capabilities`: at most 32, each of 1–128 characters, required"),
            _field("`enroll.challengeId`: UUID, required"),
            row(
                "`enroll.signature`: 8–128 characters, required",
                EDGES,
                REQUIRED,
                ENROLLMENT
                + "test_a_wrong_signature_enrols_no_device_and_does_not_use_the_challenge",
            ),
            _field("`current`, `onCommands`: an empty object"),
            _field("`heartbeat`: `bindingId` UUID, `foreground` boolean, both required"),
            _field(
                "`acknowledge`: `requestId`, `bindingId` UUIDs, `status` received or running,"
                " all required"
            ),
            _field("`submitResult`: `bindingId`, `reportId` UUIDs, required"),
            _field("`submitResult.kind`: network or application, required"),
            row(
                "`submitResult.outcome`: completed, partial or failed, required",
                EDGES,
                REQUIRED,
                EVERY_FIELD,
            ),
            _field("`submitResult.requestId`: UUID, optional"),
            row(
                "`submitResult.report`: optional; any value (ours: an object that has at least one"
                " field of a payload must be a valid payload of the given kind; any other value is"
                " stored, and the report has no payload)",
                REQUIRED,
                SUBMISSION
                + "test_a_value_that_is_not_a_report_is_stored_but_not_returned_as_the_payload",
                OPEN_POINTS + "test_a_payload_that_does_not_fit_its_kind_is_refused",
                SUBMISSION + "test_a_failed_report_can_have_no_content",
            ),
            _field("`submitResult.failureReason`: one of two words, optional"),
            _field("`createRequest`: `instanceId` UUID, `kind`, both required"),
            row(
                "`listDevices.cursor`: at most 128 characters, optional",
                EDGES,
                REQUIRED,
                OPERATOR + "test_the_length_of_a_cursor_is_limited",
            ),
            _field("`deviceDetail`: `instanceId` UUID, required; `cursor` as in `listDevices`"),
            _field("`reportDetail.reportId`, `revoke.instanceId`: UUID, required"),
            row(
                "no other field is accepted",
                UNIT + "web/test_auth.py::test_every_operation_refuses_unknown_keys_in_the_body",
                REMOTE + "test_fields.py::test_every_field_of_the_operations_has_a_test",
            ),
        ),
    ),
    Table(
        "Devices: records of replies",
        (
            row(
                "enrolment record: seven fields; `appVersion` can be null",
                EVERY_FIELD,
                STRICT_REPLIES,
                ENROLLMENT + "test_an_enrollment_stores_the_values_of_the_device",
            ),
            row(
                "device: the fields of the enrolment record and nine more, all always present",
                EVERY_FIELD,
                STRICT_RECORDS,
            ),
            row(
                "`locationName`, `organizationName`: text or null",
                EVERY_FIELD,
                UNIT + "accounts/test_names.py::test_devices_name_their_location_and_organization",
            ),
            row(
                "remote request: 14 fields; times of events that have not happened yet are null",
                EVERY_FIELD,
                STRICT_RECORDS,
                ACKNOWLEDGED,
            ),
            row(
                "report summary: ten fields; `requestId` and `failureReason` can be null",
                EVERY_FIELD,
                STRICT_RECORDS,
            ),
            row(
                "report detail: the fields of the summary except `reportId`, and eight more; `id`"
                " is the id of the report",
                EVERY_FIELD,
                STRICT_REPLIES,
                STORED,
            ),
            row(
                "`payload`: null, or a payload of version 2 or 1",
                EVERY_FIELD,
                STORED,
                SUBMISSION + "test_a_failed_report_can_have_no_content",
            ),
            row(
                "`trackerAttempts`: 0 to 9007199254740991",
                EVERY_FIELD,
                TRACKER + "test_the_number_of_attempts_is_limited",
            ),
        ),
    ),
    Table(
        "Devices: payloads of reports",
        (
            _shape("`version` 2 or 1 determines the other fields", STORED),
            _shape("common: `reportId`, `startedAt`, `finishedAt`, `completeness`, `identity`"),
            _shape("common: `environment`; unknown values are null"),
            _shape("common: `failures` and `limitations`, at most 128 of each"),
            _shape("version 2: `scope`, `discovery`, `endpointsOmitted`, `unavailable`"),
            _shape("`discovery`: null, or `mdns` and `scan`, each running, succeeded or failed"),
            row(
                "a source of `discovery` is never unsupported; a source of the network map can be",
                PAYLOAD_EDGES,
                EVERY_FIELD,
                "tests/contract/test_limits.py::"
                "test_a_discovery_source_of_the_report_is_never_unsupported",
            ),
            _shape(
                "`endpoints`: at most 256; ports 1–65535; at most 2 discovery methods, 64 printers"
            ),
            _shape("`printers`: null, or at most 64"),
            _shape("`networkMap`: null, or state, system, interfaces, hosts, sources and bounds"),
            _shape(
                "a host: `address`, `services`, `reachability`, `sources`; four more are optional"
            ),
            _shape("version 1: `reportType`, `snapshot` of version 1, `browserFields`"),
            _shape("a snapshot's field: `key`, `source`, `status`; `value` and `reason` optional"),
            _shape("peripherals: bluetooth or usb"),
            _shape(
                "`browserFields`: at most 34, each with either a value or a reason",
                "tests/contract/openapi/test_document.py::"
                "test_a_browser_field_has_a_value_or_a_reason",
            ),
            row(
                "there are 34 keys of browser fields, and no others",
                PAYLOAD_EDGES,
                EVERY_FIELD,
                "tests/contract/test_limits.py::test_there_are_34_browser_fields_and_no_other",
            ),
            row(
                "the agent writes and reads the same payloads",
                "tests/contract/test_golden_messages.py::"
                "test_a_decoded_message_is_encoded_to_the_same_json",
                "tests/contract/test_limits.py::test_a_string_is_accepted_within_its_limits",
            ),
        ),
    ),
    Table(
        "Devices: states and transitions",
        (
            row(
                "`createRequest` creates a queued request and returns `expiresAt`",
                OPERATOR + "test_a_request_is_queued_for_the_binding",
            ),
            row("`acknowledge` with received changes the status to received", ACKNOWLEDGED),
            row("`acknowledge` with running changes the status to running", ACKNOWLEDGED),
            row(
                "a request belongs to one binding; other devices cannot acknowledge it",
                DELIVERY + "test_requests_of_other_devices_and_unknown_requests_are_not_found",
            ),
            row(
                "a request has one of seven statuses",
                EVERY_FIELD,
                UNIT
                + "devices/requests/test_lifecycle.py::test_every_status_of_the_contract_has_a_row",
            ),
            row(
                "the statuses in which `acknowledge` is accepted (not documented; ours)",
                TRANSITIONS,
                DELIVERY + "test_running_can_be_the_first_acknowledgement",
                DELIVERY + "test_a_late_acknowledgement_does_not_change_a_running_request",
                DELIVERY + "test_a_finished_request_is_not_acknowledged",
            ),
            row("transitions to expired (not documented; ours)", TRANSITIONS, EXPIRED),
            row(
                "transitions to completed, partial, failed (not documented; ours)",
                TRANSITIONS,
                STORED,
                SUBMISSION + "test_a_report_for_an_expired_request_completes_the_request",
            ),
            row(
                "tracker: pending, sent, failed, disabled (the transitions are ours)",
                EVERY_FIELD,
                TRACKER + "test_a_report_is_sent_once",
                TRACKER + "test_the_number_of_attempts_is_limited",
            ),
            row(
                "`revokedAt` is null until `revoke`",
                OPERATOR + "test_a_second_revocation_changes_nothing",
                EVERY_FIELD,
            ),
            row(
                "states of maps and sources: each word of the contract is accepted and returned",
                EVERY_FIELD,
                PAYLOAD_EDGES,
            ),
        ),
    ),
)
