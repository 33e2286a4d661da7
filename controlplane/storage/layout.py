"""All tables of the service. Importing this module fills `Base.metadata`."""

from controlplane.storage import (  # noqa: F401 - for their tables
    account_tables,
    audit_tables,
    monitoring_tables,
    oauth_tables,
    report_tables,
    support_tables,
)
from controlplane.storage.merchant import (  # noqa: F401 - for their tables
    catalog_tables,
    merchant_tables,
    retail_tables,
    rollup_tables,
    sales_tables,
)
from controlplane.storage.tables import Base

__all__ = ["Base"]
