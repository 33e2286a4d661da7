"""Alembic runs this module for each command, in the connection and transaction of the caller."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=False)
context.run_migrations()
