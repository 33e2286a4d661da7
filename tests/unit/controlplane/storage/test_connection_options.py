"""Tests of the parameters with which the service connects to PostgreSQL."""

from sqlalchemy import make_url

from controlplane.storage.database import POSTGRESQL_OPTIONS, connection_options


def test_a_connection_to_a_machine_that_is_gone_ends_within_seconds() -> None:
    options = connection_options(make_url("postgresql+psycopg://venue@db/venue"))
    probes_s = options["keepalives_interval"] * options["keepalives_count"]
    assert options["keepalives_idle"] + probes_s < 15
    assert options["tcp_user_timeout"] < 15_000
    assert options["connect_timeout"] < 5


def test_parameters_of_the_url_take_precedence() -> None:
    url = make_url("postgresql+psycopg://venue@db/venue?connect_timeout=20&tcp_user_timeout=1")
    expected = POSTGRESQL_OPTIONS.keys() - {"connect_timeout", "tcp_user_timeout"}
    assert connection_options(url).keys() == expected
