"""The contract's statements about figures, and the tests of each.

The operations are ``analytics.*`` and ``reports.financialSummary``. In a statement, ``ours`` marks
a decision of this project that the contract leaves open.
"""

from typing import Final

from tests.contract.service.coverage.rows import EVERY_FIELD, EXAMPLE, UNIT, Table, row

OPERATIONS: Final = UNIT + "analytics/test_operations.py::"
WINDOWS: Final = UNIT + "figures/test_windows.py::"
MONEY: Final = UNIT + "figures/test_money.py::"
RECOUNT: Final = UNIT + "figures/test_recount.py::test_figures_equal_a_recount"
PULSE: Final = UNIT + "figures/test_pulse.py::test_a_pulse_equals_a_recount"
PERIOD: Final = OPERATIONS + "test_the_refusal_of_an_invalid_period_names_the_field"
FITS: Final = OPERATIONS + "test_a_reply_fits_its_message_type"

FIGURES: Final = (
    Table(
        "Figures: operations",
        (
            *(
                row(f"`{name}`", EXAMPLE, FITS, *also)
                for name, *also in (
                    (
                        "analytics.dashboard",
                        OPERATIONS + "test_dashboard_and_summary_agree",
                    ),
                    ("analytics.venueFinancialPulse", PULSE),
                    ("reports.financialSummary", RECOUNT),
                )
            ),
            *(
                row(
                    f"`analytics.{name}` is deprecated; `analytics.{successor}` replaces it",
                    EXAMPLE,
                    FITS,
                    OPERATIONS + "test_deprecated_operations_name_their_successor",
                )
                for name, successor in (
                    ("chart", "dashboard"),
                    ("sales", "dashboard"),
                    ("items", "dashboard"),
                    ("reconciliation", "dashboard"),
                    ("trend", "dashboard"),
                    ("venues", "dashboard"),
                    ("venuePulse", "venueFinancialPulse"),
                )
            ),
            row(
                "only `POST` is served; the body is an object, the reply is 200 with JSON",
                UNIT + "web/test_auth.py::test_only_post_is_served",
                UNIT + "web/test_auth.py::test_every_operation_requires_a_json_object",
            ),
        ),
    ),
    Table(
        "Figures: fields of the body",
        (
            row(
                "`locationId`: at least one character, required (ours: no control characters)",
                OPERATIONS + "test_an_invalid_field_of_the_body_is_named",
            ),
            row(
                "`period`: one of five words, `today` by default",
                PERIOD,
                WINDOWS + "test_periods_consist_of_local_days",
            ),
            row(
                "`from`, `to`: full dates, optional (ours: at most 366 days; other periods than"
                " custom ignore them)",
                PERIOD,
                WINDOWS + "test_a_custom_period_has_the_given_days",
                WINDOWS + "test_a_custom_period_can_have_366_days",
                OPERATIONS + "test_figures_of_a_year_are_returned",
                OPERATIONS + "test_dates_are_ignored_unless_the_period_is_custom",
            ),
            row(
                "`locationMode`: single or all, single by default",
                PERIOD,
                OPERATIONS + "test_location_mode_all_selects_every_location_that_the_key_may_see",
            ),
            row(
                "`paymentTypes`: at least one of five words, for operations that have this field",
                OPERATIONS + "test_only_some_operations_accept_payment_types",
                OPERATIONS + "test_the_refusal_of_wrong_payment_types_names_the_field",
            ),
            row(
                "the pulses accept only `locationId`",
                UNIT + "web/test_auth.py::test_every_operation_refuses_unknown_keys_in_the_body",
                UNIT + "analytics/test_schema.py::test_request_bodies_are_validated",
            ),
        ),
    ),
    Table(
        "Figures: what the numbers are",
        (
            row("money: integers in minor units within ±9007199254740991", RECOUNT, EVERY_FIELD),
            row(
                "a `Window` of a location without a valid time zone is marked with `fellBackToUtc`",
                OPERATIONS + "test_a_location_without_a_time_zone_is_reported",
                UNIT + "figures/test_local_time.py::test_an_invalid_time_zone_falls_back_to_utc",
            ),
            row(
                "`previous` has the same fields as `current`",
                RECOUNT,
                WINDOWS
                + "test_the_previous_period_has_the_same_length_and_directly_precedes_the_period",
            ),
            row(
                "`sharePercent` is null if the total is zero",
                MONEY + "test_a_percentage_or_ratio_to_zero_is_none",
            ),
            row("in a pulse, `weekday` is 1–7 and `hour` is 0–23", PULSE),
        ),
    ),
    Table(
        "Figures: who may call",
        (
            row(
                "a read-only API key is accepted",
                OPERATIONS + "test_a_read_only_key_may_query_figures",
            ),
            row("a credential is required", OPERATIONS + "test_figures_require_a_key"),
            row(
                "a key has access to its own locations in its organization only",
                OPERATIONS + "test_a_foreign_location_is_refused_whether_or_not_it_exists",
                OPERATIONS + "test_a_key_of_another_organization_gets_location_not_found",
            ),
        ),
    ),
)
