"""All checks, in the order of their output."""

from typing import Final

from agent.doctor.check import Check
from agent.doctor.checks import (
    application,
    configuration,
    connection,
    daemon,
    network,
    service,
    storage,
)

BEFORE_STEP_DOWN: Final = ("configuration", "api-key")
"""Checks that read files which only root may be able to read. They run before root drops its
privileges."""

CHECKS: Final = (
    Check("configuration", "configuration", configuration.configuration),
    Check("api-key", "configuration", configuration.api_key, ("configuration",)),
    Check("trust-anchors", "configuration", configuration.trust_anchors, ("configuration",)),
    Check("printers", "configuration", configuration.printers, ("configuration",)),
    Check("state-directory", "this machine", storage.state_directory, after=("configuration",)),
    Check(
        "disk-space",
        "this machine",
        storage.disk_space,
        ("state-directory",),
        uses_public_facts=True,
    ),
    Check("key-permissions", "this machine", storage.key_permissions, ("state-directory",)),
    Check("device-record", "this machine", storage.device_record, ("state-directory",)),
    Check("journal", "this machine", storage.journal, ("state-directory",)),
    Check("boot", "the agent", daemon.boot),
    Check(
        "daemon",
        "the agent",
        daemon.daemon,
        ("state-directory",),
        after=("configuration", "boot"),
        uses_public_facts=True,
    ),
    Check("version", "the agent", daemon.version, ("daemon",)),
    Check("other-agent", "the agent", daemon.other_agent, after=("boot", "daemon")),
    Check("conditions", "the agent", daemon.conditions, ("daemon",)),
    Check("collector", "network", network.collector),
    Check("confinement", "network", network.confinement, ("collector",)),
    Check("interfaces", "network", network.interfaces, ("collector",)),
    Check("gateway", "network", network.gateway, ("collector",)),
    Check("neighbours", "network", network.neighbours, ("collector",)),
    Check("multicast", "network", network.multicast, ("collector",)),
    Check("mdns-port", "network", network.mdns_port),
    Check("local-network", "network", network.local_network),
    Check("route", "service", connection.route, ("configuration",)),
    Check("name-resolution", "service", connection.name_resolution, ("route",)),
    Check("connection", "service", connection.connection, ("name-resolution",)),
    Check("proxy", "service", connection.proxy, ("connection",)),
    Check("clock", "service", connection.clock, ("proxy",)),
    Check("certificate", "service", connection.certificate, ("proxy", "trust-anchors")),
    Check("captive-portal", "service", service.captive_portal, ("certificate", "api-key")),
    Check("service", "service", service.service, ("captive-portal",)),
    Check("credential", "service", service.credential, ("service",)),
    Check("write-grant", "service", service.write_grant, ("credential",), after=("daemon",)),
    Check("location", "service", service.location, ("write-grant", "device-record")),
    Check("binding", "service", service.binding, ("credential", "device-record")),
    Check("commands", "service", daemon.commands, ("daemon", "binding")),
    Check("interruptions", "service", daemon.interruptions, ("daemon",)),
    Check("outbox", "service", daemon.outbox, ("daemon",)),
    Check("print-system", "application", application.print_system),
    Check("kiosk", "application", application.kiosk, ("configuration",)),
)
