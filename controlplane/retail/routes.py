"""Paths of the retail API (contract: Endpoints)."""

from typing import Final

BASE: Final = "/api/v1"

DOCUMENT: Final = f"{BASE}/openapi.json"

TOKENS: Final = f"{BASE}/auth/tokens"
REFRESH: Final = f"{BASE}/auth/tokens/refresh"
GOODS: Final = f"{BASE}/catalog/goods/regular"
GOOD: Final = f"{BASE}/catalog/goods/regular/{{good_id}}"
CATEGORIES: Final = f"{BASE}/catalog/categories"
EMPLOYEES: Final = f"{BASE}/employees"
SALES: Final = f"{BASE}/sales"
SALE: Final = f"{BASE}/sales/{{sale_id}}"
POINTS_OF_SALE: Final = f"{BASE}/business-structure/point-of-sales"
UOMS: Final = f"{BASE}/uoms"
FEES: Final = f"{BASE}/fees"


def is_retail(path: str) -> bool:
    """Return whether a path belongs to the retail API, even if no operation has this path."""
    return path.startswith(BASE + "/")
