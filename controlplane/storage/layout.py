"""All tables of the service. Importing this module fills `Base.metadata`."""

from controlplane.storage import (
    account_tables,
    audit_tables,
    monitoring_tables,
    oauth_tables,
    support_tables,
)
from controlplane.storage.merchant import (
    catalog_tables,
    merchant_tables,
    retail_tables,
    rollup_tables,
    sales_tables,
)
from controlplane.storage.tables import Base

__all__ = [
    "Base",
    "account_tables",
    "audit_tables",
    "catalog_tables",
    "merchant_tables",
    "monitoring_tables",
    "oauth_tables",
    "retail_tables",
    "rollup_tables",
    "sales_tables",
    "support_tables",
]
