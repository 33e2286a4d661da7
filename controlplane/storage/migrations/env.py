"""Run by Alembic for each command. The caller gives the connection and owns the transaction."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=False)
context.run_migrations()
