"""The retail document's statements, and the tests of each."""

from typing import Final

from tests.contract.service.coverage.rows import EXAMPLE, UNIT, Table, row

GOODS: Final = UNIT + "retail/test_goods.py::"
SALES: Final = UNIT + "retail/test_sales.py::"
TOKENS: Final = UNIT + "retail/test_tokens.py::"
REFUSALS: Final = UNIT + "retail/test_refusals.py::"
INSIDE: Final = GOODS + "test_what_is_just_inside_the_limits_is_taken"
OUTSIDE: Final = GOODS + "test_what_is_just_outside_the_limits_is_named"
CREATED: Final = GOODS + "test_a_good_is_created_and_returned"
LONGEST: Final = SALES + "test_a_sale_with_the_longest_values_is_returned"
PARAMETER: Final = SALES + "test_a_wrong_parameter_is_named"
CURSOR: Final = SALES + "test_a_cursor_is_good_where_it_came_from_for_a_day"

RETAIL: Final = (
    Table(
        "Retail: operations",
        (
            row(
                "`POST /auth/tokens` is public: `api_key` → tokens",
                EXAMPLE,
                TOKENS + "test_an_api_key_gets_tokens_of_the_documents_form",
                TOKENS + "test_a_wrong_body_is_named",
            ),
            row(
                "`POST /auth/tokens/refresh` is public: `refresh_token` → a new access token",
                EXAMPLE,
                TOKENS + "test_what_was_refreshed_is_another_access_token",
            ),
            row("`GET /catalog/goods/regular/{good_id}`: 200, a regular good", EXAMPLE, CREATED),
            row(
                "`good_id` is a UUID and required",
                GOODS + "test_an_invalid_good_id_is_refused_by_name",
            ),
            row("`POST /catalog/goods/regular`: 201, a regular good", EXAMPLE, CREATED),
            row(
                "`GET /sales`: 200, a page of completed sales, with their positions",
                EXAMPLE,
                SALES + "test_a_sale_has_every_documented_field",
                SALES + "test_only_completed_sales_of_the_company_are_listed",
            ),
            row(
                "`GET /catalog/goods/regular` (its shape is ours)",
                EXAMPLE,
                GOODS + "test_goods_are_listed_in_pages",
            ),
            row(
                "categories, `GET /uoms`, `GET /fees` with `fee_items[]`, each with an `id`",
                EXAMPLE,
                GOODS + "test_categories_fees_and_units_are_listed",
                GOODS + "test_units_and_fees_are_listed_in_pages",
            ),
            row(
                "employees, `GET /business-structure/point-of-sales`",
                EXAMPLE,
                SALES + "test_terminals_and_people_are_listed",
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
            row("`name`: 2 to 128 characters; an empty one is a validation error", INSIDE, OUTSIDE),
            row("`description`: 2 to 1024 characters, optional", INSIDE, OUTSIDE),
            row(
                "`external_data`: optional; `id` of 4 to 128 characters, and anything",
                INSIDE,
                OUTSIDE,
            ),
            row("`category_id`: UUID or null; null is the root", CREATED, INSIDE, OUTSIDE),
            row("`uom_id`: UUID of a unit; an empty one is a validation error", CREATED, OUTSIDE),
            row("`vat.fee_item_id`: required, of the fees' listing", CREATED, OUTSIDE),
            row("`variations`: 1 to 150, required", INSIDE, OUTSIDE),
            row(
                "a variation's `name`: not empty, 128 characters at most; required where there are"
                " several, left out where there is one",
                INSIDE,
                OUTSIDE,
                GOODS + "test_the_only_variation_has_no_name",
            ),
            row("a variation's `description` and `external_data`", CREATED, INSIDE, OUTSIDE),
            row("a variation's `status`: active or inactive, active by default", CREATED, OUTSIDE),
            row("`default_price`: int64 from 0, `currency_code` `AED`", INSIDE, OUTSIDE),
            row(
                "`codes`: 20 at most; six types; values of 4 to 128 characters",
                EXAMPLE,
                INSIDE,
                OUTSIDE,
            ),
            row(
                "an `external_data.id` is unique in a company across categories, goods, variations",
                GOODS + "test_an_external_id_is_used_once_in_a_company",
                GOODS + "test_an_external_id_is_used_once_in_a_body",
                GOODS + "test_another_company_may_use_the_same_external_id",
            ),
        ),
    ),
    Table(
        "Retail: parameters of `GET /sales`",
        (
            row("`status`: required, `completed` only", PARAMETER),
            row(
                "`cursor`: opaque, 128 characters at most",
                CURSOR,
                SALES + "test_the_longest_cursor_fits",
            ),
            row(
                "the order: eight words, `initiated_at_desc` by default (`sort` is our name)",
                SALES + "test_pages_follow_each_other_in_every_order",
                SALES + "test_sales_are_newest_first_by_default",
                PARAMETER,
            ),
            row(
                "`initiated_at_from`, `initiated_at_to`: inclusive; both are a closed window",
                SALES + "test_both_bounds_are_inclusive",
                PARAMETER,
            ),
            row(
                "the next page's `cursor` is null on the last one",
                SALES + "test_pages_follow_each_other_in_every_order",
            ),
            row("no `company_id` is sent", PARAMETER),
        ),
    ),
    Table(
        "Retail: limits",
        (
            row("variations: 1 to 150 of a good", INSIDE, OUTSIDE),
            row("codes: 20 at most of a variation or a position", INSIDE, OUTSIDE, LONGEST),
            row("a page has 20 items", SALES + "test_pages_follow_each_other_in_every_order"),
            row("cursor: 128 characters at most", SALES + "test_the_longest_cursor_fits", CURSOR),
            row("good: name 2–128, description 2–1024, variation's name 128", INSIDE, OUTSIDE),
            row("image_url: 2048 characters at most", GOODS + "test_a_good_is_returned_as_stored"),
            row("code value and external_data.id: 4–128 characters", INSIDE, OUTSIDE, LONGEST),
            row("unit: name 2–32, symbol 1–16, exponent 3 at most", LONGEST),
            row("VAT: name 2–64, percentage 100 at most", LONGEST),
            row("sale: number 36, ticket_number 16, comment 1024, position's name 512", LONGEST),
            row("an access token lives for 3600 seconds", TOKENS + "test_an_access_token_runs_out"),
        ),
    ),
    Table(
        "Retail: who may call",
        (
            row(
                "all but the two token endpoints need a bearer token",
                SALES + "test_sales_require_a_token",
                TOKENS + "test_what_is_no_key_gets_nothing",
            ),
            row(
                "keys end in `_live_` or `_test_` and 64 characters",
                TOKENS + "test_keys_have_the_documents_form",
            ),
            row(
                "tokens of this API and of the product are not interchangeable",
                TOKENS + "test_credentials_of_the_facade_and_of_retail_are_not_interchangeable",
            ),
            row(
                "a client is bound to one company",
                GOODS + "test_goods_of_another_company_do_not_exist",
                SALES + "test_only_completed_sales_of_the_company_are_listed",
            ),
        ),
    ),
    Table(
        "Retail: errors",
        (
            row(
                "400 `validation_error` with `errors`: names of fields, lists of messages",
                EXAMPLE,
                GOODS + "test_all_mistakes_are_named_at_once",
            ),
            row("400 `validation_error`: a variation without a name beside others", OUTSIDE),
            row(
                "400 `invalid_request`: malformed",
                EXAMPLE,
                GOODS + "test_what_is_no_json_is_refused",
            ),
            row(
                "400 `invalid_cursor`",
                EXAMPLE,
                CURSOR,
                SALES + "test_a_cursor_of_another_listing_is_refused",
            ),
            row("401: no body", EXAMPLE, SALES + "test_sales_require_a_token"),
            row("403: no body", EXAMPLE, GOODS + "test_who_only_reads_creates_nothing"),
            row("404: no body", EXAMPLE, GOODS + "test_goods_of_another_company_do_not_exist"),
            row(
                "409 `existing_entity_conflict`, reason `duplicate_external_data_id`",
                EXAMPLE,
                GOODS + "test_an_external_id_is_used_once_in_a_company",
            ),
            row("415 `invalid_request`", EXAMPLE, GOODS + "test_another_content_type_is_refused"),
            row(
                "429 `unexpected_error`, `Retry-After` in seconds",
                EXAMPLE,
                TOKENS + "test_guessing_tokens_is_rate_limited",
                REFUSALS + "TestRate::test_too_many_calls_return_retry_after",
            ),
            row(
                "500 `internal_server_error`",
                EXAMPLE,
                REFUSALS + "test_an_internal_error_reveals_no_details",
            ),
            row("503 without a code", EXAMPLE, REFUSALS + "test_a_busy_database_asks_to_come_back"),
        ),
    ),
    Table(
        "Retail: what the document does not show, as it is read here",
        (
            row(
                "the parameter of the order is `sort`",
                SALES + "test_pages_follow_each_other_in_every_order",
            ),
            row(
                "a refreshed reply is that of an exchange",
                EXAMPLE,
                TOKENS + "test_what_was_refreshed_is_another_access_token",
            ),
            row(
                "a refresh token lives for 30 days and is used once; a second use ends its family",
                TOKENS + "test_a_refresh_token_runs_out",
                TOKENS + "test_a_refresh_token_is_used_once_and_a_second_use_ends_its_family",
            ),
            row(
                "a cursor is good for 24 hours, one company, one listing, its filters and order;"
                " what arrives meanwhile neither repeats nor hides a sale",
                CURSOR,
                SALES + "test_a_cursor_of_another_listing_is_refused",
                SALES + "test_sales_that_arrive_meanwhile_neither_repeat_nor_hide_one",
            ),
            row(
                "other listings have pages of 20 with a cursor, too",
                GOODS + "test_goods_are_listed_in_pages",
            ),
            row(
                "fields in `errors` are written `variations[2].codes[0].value`; mistakes in the"
                " body itself are reported together, then ids that lead nowhere and missing names",
                GOODS + "test_all_mistakes_are_named_at_once",
            ),
            row(
                "a barcode has its length and its check digit",
                GOODS + "test_check_digits_are_those_of_real_codes",
                OUTSIDE,
            ),
            row(
                "texts hold no control characters, a description none but tabs and ends of lines;"
                " free data is at most 32 lists and objects deep, its numbers finite",
                OUTSIDE,
                GOODS + "test_a_number_that_is_too_large_to_keep_is_refused",
            ),
            row("a body's key or a parameter that is not named is an error", OUTSIDE, PARAMETER),
            row(
                "a sale with a line that lacks its unit or VAT has `positions` null",
                SALES + "test_what_is_not_known_is_null",
            ),
            row(
                "sales in another currency than `AED` are not shown",
                SALES + "test_only_completed_sales_of_the_company_are_listed",
            ),
            row(
                "another method is 405 `invalid_request`", GOODS + "test_another_method_is_refused"
            ),
            row(
                "a token's body is 4 KiB at most: 413 `invalid_request`",
                TOKENS + "test_a_long_body_is_not_read",
            ),
        ),
    ),
)
