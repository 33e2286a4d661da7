"""Forms of fields that no call of docs/service.md returns.

Each has the test that covers it, or the reason why the service never sends it.
"""

from collections.abc import Mapping
from typing import Final

from tests.contract.service.coverage.figures import MONEY
from tests.contract.service.coverage.reply_forms import ABSENT, NULL, VALUE
from tests.contract.service.coverage.retail import GOODS, SALES

Form = tuple[str, str, str]
"""An object, its field, and a form of the field, such as null, absent or a value of an enum."""

TESTED_SEPARATELY: Final[Mapping[Form, str]] = {
    **{
        ("Regular good", "status", status): GOODS + "test_a_good_is_returned_as_stored"
        for status in ("inactive", "unknown")
    },
    ("Variation", "image_url", VALUE): GOODS + "test_a_good_is_returned_as_stored",
    ("Position", "source", "custom_amount"): SALES + "test_a_position_is_returned_with_its_source",
    ("Method", "sharePercent", NULL): MONEY + "test_a_percentage_or_ratio_to_zero_is_none",
}
"""Forms that do not occur at a merchant of the sandbox, each with the test that covers it."""

NEVER_SENT: Final[Mapping[Form, str]] = {
    ("Problem", "detail", ABSENT): "a problem always has a detail",
    ("Problem", "errors", NULL): "left out if there are no errors",
    ("Window", "intervals", ABSENT): "always present",
}
"""Forms that the contract permits but this service never sends, each with the reason."""
