"""Run by Alembic for each command: the connection is given, and the transaction is its owner's."""

from alembic import context

from controlplane.storage.layout import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    # SQLite can hardly alter a table: it is made anew and filled from the old one.
    render_as_batch=True,
    transactional_ddl=False,
)
context.run_migrations()
