"""The statements of the contract's part about the retail API, and the tests of each."""

from typing import Final

from tests.contract.service.coverage.rows import EXAMPLE, UNIT, Table, row

GOODS: Final = UNIT + "retail/test_goods.py::"
SALES: Final = UNIT + "retail/test_sales.py::"
TOKENS: Final = UNIT + "retail/test_tokens.py::"
REFUSALS: Final = UNIT + "retail/test_refusals.py::"
INSIDE: Final = GOODS + "test_permitted_values_are_accepted"
OUTSIDE: Final = GOODS + "test_the_refusal_of_a_value_beyond_the_limits_names_its_field"
CREATED: Final = GOODS + "test_a_good_is_created_and_returned"
LONGEST: Final = SALES + "test_a_sale_with_the_longest_values_is_returned"
PARAMETER: Final = SALES + "test_the_refusal_of_an_invalid_parameter_names_the_parameter"
CURSOR: Final = SALES + "test_a_cursor_is_valid_for_a_day_and_its_own_query"

RETAIL: Final = (
    Table(
        "Retail: operations",
        (
            row(
                "`POST /auth/tokens` is public: `api_key` → tokens",
                EXAMPLE,
                TOKENS + "test_an_api_key_gets_tokens_in_the_documented_form",
                TOKENS + "test_the_refusal_of_an_invalid_token_request_names_the_fields",
            ),
            row(
                "`POST /auth/tokens/refresh` is public: `refresh_token` → a new access token",
                EXAMPLE,
                TOKENS + "test_a_refresh_returns_a_new_access_token",
            ),
            row("`GET /catalog/goods/regular/{good_id}`: 200, a regular good", EXAMPLE, CREATED),
            row(
                "`good_id` is a UUID and required",
                GOODS + "test_the_refusal_of_an_invalid_good_id_names_the_parameter",
            ),
            row("`POST /catalog/goods/regular`: 201, a regular good", EXAMPLE, CREATED),
            row(
                "`GET /sales`: 200, a page of completed sales, with their positions",
                EXAMPLE,
                SALES + "test_a_sale_has_every_documented_field",
                SALES + "test_only_completed_sales_of_the_company_are_listed",
            ),
            row(
                "`GET /catalog/goods/regular` (the form of the reply is ours)",
                EXAMPLE,
                GOODS + "test_goods_are_listed_in_pages",
            ),
            row(
                "lists of categories, of units (`GET /uoms`) and of fees (`GET /fees`, in"
                " `fee_items[]`); each entry has an `id`",
                EXAMPLE,
                GOODS + "test_categories_fees_and_units_are_listed",
                GOODS + "test_units_and_fees_are_listed_in_pages",
            ),
            row(
                "lists of employees, and of points of sale"
                " (`GET /business-structure/point-of-sales`)",
                EXAMPLE,
                SALES + "test_points_of_sale_and_employees_are_listed",
            ),
            row(
                "`GET /sales/{sale_id}`",
                EXAMPLE,
                SALES + "test_a_sale_has_every_documented_field",
            ),
        ),
    ),
    Table(
        "Retail: fields of a good that is created",
        (
            row(
                "`name`: 2 to 128 characters; an empty name is a validation error (ours: a name of"
                " spaces is accepted)",
                INSIDE,
                OUTSIDE,
            ),
            row("`description`: 2 to 1024 characters, optional", INSIDE, OUTSIDE),
            row(
                "`external_data`: optional, can be null; `id` of 4 to 128 characters, and any other"
                " content",
                INSIDE,
                OUTSIDE,
                GOODS + "test_external_data_can_be_null",
            ),
            row("`category_id`: UUID or null; null is the root", CREATED, INSIDE, OUTSIDE),
            row("`uom_id`: UUID of a unit; an empty value is a validation error", CREATED, OUTSIDE),
            row(
                "`vat.fee_item_id`: required, any id from `GET /fees`",
                CREATED,
                OUTSIDE,
                GOODS + "test_every_listed_fee_can_be_the_vat_of_a_good",
            ),
            row("`variations`: 1 to 150, required", INSIDE, OUTSIDE),
            row(
                "a variation's `name`: 1 to 128 characters; required if the good has"
                " several variations, not permitted if it has one variation",
                INSIDE,
                OUTSIDE,
                GOODS + "test_a_single_variation_can_have_no_name",
            ),
            row("a variation's `description` and `external_data`", CREATED, INSIDE, OUTSIDE),
            row("a variation's `status`: active or inactive, active by default", CREATED, OUTSIDE),
            row(
                "`default_price`: `value` is an int64, at least 0; `currency_code` is `AED`; both"
                " are required",
                INSIDE,
                OUTSIDE,
                UNIT + "agent_protocol/test_tools.py::"
                "test_every_price_of_the_retail_api_is_returned_unchanged",
            ),
            row(
                "`codes`: at most 20; six types; values of 4 to 128 characters",
                EXAMPLE,
                INSIDE,
                OUTSIDE,
            ),
            row(
                "an `external_data.id` is unique in a company across categories, goods, variations",
                GOODS + "test_an_external_id_must_be_unique_in_a_company",
                GOODS + "test_an_external_id_must_be_unique_in_a_body",
                GOODS + "test_another_company_may_use_the_same_external_id",
            ),
        ),
    ),
    Table(
        "Retail: parameters of `GET /sales`",
        (
            row("`status`: required, `completed` only", PARAMETER),
            row(
                "`cursor`: opaque, at most 128 characters",
                CURSOR,
                SALES + "test_the_longest_cursor_fits_the_limit_of_the_contract",
            ),
            row(
                "`sort` (our name): one of eight orders, `initiated_at_desc` by default",
                SALES + "test_pages_contain_each_sale_once_in_every_order",
                SALES + "test_sales_are_newest_first_by_default",
                PARAMETER,
            ),
            row(
                "`initiated_at_from`, `initiated_at_to`: both bounds are inclusive",
                SALES + "test_both_bounds_of_the_time_filter_are_inclusive",
                PARAMETER,
            ),
            row(
                "`cursor` is null on the last page",
                SALES + "test_pages_contain_each_sale_once_in_every_order",
            ),
            row("clients send no `company_id`", PARAMETER),
        ),
    ),
    Table(
        "Retail: limits",
        (
            row("a good has 1 to 150 variations", INSIDE, OUTSIDE),
            row("a variation or a position has at most 20 codes", INSIDE, OUTSIDE, LONGEST),
            row("a page has 20 items", SALES + "test_pages_contain_each_sale_once_in_every_order"),
            row(
                "cursor: at most 128 characters",
                SALES + "test_the_longest_cursor_fits_the_limit_of_the_contract",
                CURSOR,
            ),
            row(
                "good: name 2–128 characters, description 2–1024, name of a variation at most 128",
                INSIDE,
                OUTSIDE,
            ),
            row("image_url: at most 2048 characters", GOODS + "test_a_good_is_returned_as_stored"),
            row("code value and external_data.id: 4–128 characters", INSIDE, OUTSIDE, LONGEST),
            row("unit: name 2–32 characters, symbol 1–16 characters, exponent at most 3", LONGEST),
            row("VAT: name 2–64 characters, percentage at most 100", LONGEST),
            row(
                "sale: at most 36 characters in number, 16 in ticket_number, 1024 in comment, 512"
                " in the name of a position",
                LONGEST,
            ),
            row(
                "an access token is valid for 3600 seconds",
                TOKENS + "test_an_access_token_expires",
            ),
        ),
    ),
    Table(
        "Retail: who may call",
        (
            row(
                "all endpoints except the two token endpoints require a bearer token",
                SALES + "test_every_retail_operation_requires_a_token",
                TOKENS + "test_an_invalid_api_key_gets_no_tokens",
            ),
            row(
                "keys have three parts: a prefix, then `_live_` or `_test_`, then 64 characters",
                TOKENS + "test_keys_have_the_documented_form",
            ),
            row(
                "tokens of this API and credentials of the facade are not interchangeable",
                TOKENS + "test_credentials_of_the_facade_and_of_retail_are_not_interchangeable",
            ),
            row(
                "a client is bound to one company",
                GOODS + "test_a_good_of_another_company_returns_404",
                SALES + "test_only_completed_sales_of_the_company_are_listed",
            ),
        ),
    ),
    Table(
        "Retail: errors",
        (
            row(
                "400 `validation_error`: `errors` maps names of fields to lists of messages",
                EXAMPLE,
                GOODS + "test_one_refusal_names_all_invalid_fields",
            ),
            row("400 `validation_error`: one of several variations has no name", OUTSIDE),
            row(
                "400 `invalid_request`: the body is malformed",
                EXAMPLE,
                GOODS + "test_an_invalid_json_body_is_refused",
            ),
            row(
                "400 `invalid_cursor`",
                EXAMPLE,
                CURSOR,
                SALES + "test_a_cursor_of_another_listing_is_refused",
            ),
            row("401: no body", EXAMPLE, SALES + "test_every_retail_operation_requires_a_token"),
            row("403: no body", EXAMPLE, GOODS + "test_a_read_only_key_cannot_create_a_good"),
            row("404: no body", EXAMPLE, GOODS + "test_a_good_of_another_company_returns_404"),
            row(
                "409 `existing_entity_conflict`, reason `duplicate_external_data_id`",
                EXAMPLE,
                GOODS + "test_an_external_id_must_be_unique_in_a_company",
            ),
            row("415 `invalid_request`", EXAMPLE, GOODS + "test_another_content_type_is_refused"),
            row(
                "429 `unexpected_error`, `Retry-After` in seconds",
                EXAMPLE,
                TOKENS + "test_guessing_api_keys_is_rate_limited",
                REFUSALS + "TestRate::test_too_many_calls_return_retry_after",
            ),
            row(
                "500 `internal_server_error`",
                EXAMPLE,
                REFUSALS + "test_an_internal_error_reveals_no_details",
            ),
            row(
                "503 without a code",
                EXAMPLE,
                REFUSALS + "test_a_busy_database_returns_503_with_retry_after",
                REFUSALS + "test_creating_a_good_in_a_locked_database_returns_503_with_retry_after",
            ),
        ),
    ),
    Table(
        "Retail: decisions that the contract leaves open",
        (
            row(
                "the parameter of the sort order is `sort`",
                SALES + "test_pages_contain_each_sale_once_in_every_order",
            ),
            row(
                "the reply to a refresh has the same fields as the reply to `POST /auth/tokens`",
                EXAMPLE,
                TOKENS + "test_a_refresh_returns_a_new_access_token",
            ),
            row(
                "a refresh token is valid for 30 days and can be used once; a second use ends all"
                " access and refresh tokens that came from the same exchange of an API key",
                TOKENS + "test_a_refresh_token_expires",
                TOKENS + "test_a_second_use_of_a_refresh_token_ends_its_token_family",
                TOKENS + "test_the_end_of_a_token_family_ends_all_its_access_tokens",
            ),
            row(
                "a cursor is valid for 24 hours, for the same company, listing, filters and order;"
                " sales that arrive meanwhile cause neither repeated nor skipped sales",
                CURSOR,
                SALES + "test_a_cursor_of_another_listing_is_refused",
                SALES + "test_sales_added_between_two_pages_cause_no_repeated_or_skipped_sale",
            ),
            row(
                "the listings other than `GET /sales` also have pages of 20 items with a cursor",
                GOODS + "test_goods_are_listed_in_pages",
            ),
            row(
                "fields in `errors` are written `variations[2].codes[0].value`; all invalid"
                " values are reported together; unknown ids and missing names are reported only if"
                " there are no invalid values",
                GOODS + "test_one_refusal_names_all_invalid_fields",
            ),
            row(
                "a barcode of a wrong length or with a wrong check digit is accepted; the service"
                " logs a warning",
                GOODS + "test_doubtful_values_are_accepted_and_logged",
                GOODS + "test_real_codes_have_valid_check_digits",
                INSIDE,
            ),
            row(
                "texts contain no control characters, except tabs and line breaks in descriptions;"
                " `external_data` has at most 32 levels of lists and objects, and only finite"
                " numbers",
                OUTSIDE,
                GOODS + "test_a_number_that_is_too_large_to_store_is_refused",
            ),
            row("an unknown key in a body or an unknown parameter is an error", OUTSIDE, PARAMETER),
            row(
                "a sale with a line that lacks its unit or VAT has `positions` null",
                SALES + "test_unknown_values_of_a_sale_are_null",
            ),
            row(
                "sales in a currency other than `AED` are not listed; the figures count them",
                SALES + "test_only_completed_sales_of_the_company_are_listed",
                UNIT + "cli/merchant/test_listing.py::"
                "test_figures_count_the_listed_sales_and_the_sales_in_other_currencies",
            ),
            row(
                "HTTP methods that a path does not serve get 405 `invalid_request`",
                GOODS + "test_another_method_is_refused",
            ),
            row(
                "a token request with a body larger than 4 KiB gets 413 `invalid_request`",
                TOKENS + "test_a_long_body_returns_413",
            ),
        ),
    ),
)
