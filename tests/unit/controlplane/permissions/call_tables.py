"""Tables of the calls of each operation, with their arguments for each target.

The keys of the tables are paths, methods with paths, or names of tools. The items of a call are, in
this order:

- only in some tables: the name of a row of `OPERATIONS` in permission_tables.py, or the last word
  of this name
- the name of a row of `LOCATIONS` in permission_tables.py
- the body
- only in tables with calls that return a list: the mark (see `Mark`)

The tables are written by hand, not generated from the service.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import pyotp

from agent.wire import routes
from controlplane.accounts.members.operations import PREFIX as MEMBERS
from controlplane.accounts.profile import PREFIX as PROFILE
from controlplane.accounts.second_factor import codes
from controlplane.accounts.second_factor.operations import POLICY
from controlplane.accounts.second_factor.operations import PREFIX as FACTOR
from controlplane.alerts.operations.registry import ALERT_WEBHOOK, ALERTS
from controlplane.devices.locations.operations import PREFIX as LOCATION_SETTINGS
from controlplane.retail import routes as retail
from controlplane.storage.account_tables import SecondFactor, SignInSession
from controlplane.support import routes as support
from controlplane.web.accounts.code_form import RECOVERY_CODES, REMOVE
from controlplane.web.accounts.sign_in import CHANGE_PASSWORD
from controlplane.web.console_api import PREFIX as CONSOLE
from tests.unit.controlplane.accounts.people import PASSWORD
from tests.unit.controlplane.permissions.credentials import Credential, CredentialMaker, UserObjects
from tests.unit.controlplane.permissions.organizations import (
    EnrolledDevice,
    LocationObjects,
    new_device,
    new_link,
    submission,
)
from tests.unit.controlplane.permissions.permission_tables import TARGETS, Target

Json = Any
NEW_KEY: Final = {"name": "test", "canWrite": False, "locations": []}
# Rows of `LOCATIONS` in permission_tables.py
NOTHING = "nothing"
OBJECT = "an object of a location"
LOCATION = "a location"
LOCATION_WITH_SALES = "a location with sales"
LOCATION_ID = "a location id that need not exist"
LIST = "a list of objects of locations"
NEWEST_DEVICE = "the newest device of the key"
ORGANIZATION_LIST = "a list of objects of the organization"
MEMBER = "a member or an invitation"
ORGANIZATION = "the organization"
USER_OBJECT = "a session, key or grant of a user"


@dataclass(frozen=True, slots=True)
class CallContext:
    """The caller and the objects of a call. ``others`` has another user's objects, by target."""

    maker: CredentialMaker
    credential: Credential
    others: Mapping[Target, UserObjects]

    def objects(self, target: Target) -> LocationObjects:
        return self.maker.objects_by_target[target]

    def new_link(self, organization_id: str | None = None) -> str:
        return new_link(self.maker.session, self.maker.now, organization_id)

    def user_objects(self, target: Target) -> UserObjects:
        own = self.credential.owned
        return own if own is not None and target == "own" else self.others[target]

    def device(self, target: Target) -> EnrolledDevice:
        """Return the device that the credential enrolled for the target.

        If it enrolled none, return a device of another key.
        """
        return self.credential.devices.get(target, self.objects(target).device)


Body = Callable[[CallContext, Target], Json]
"""Returns the arguments of a call for a target."""
Mark = Callable[[CallContext, Target], object]
"""Returns text that is in a returned list only if the list contains the object of the target."""


def _nothing(_context: CallContext, _target: Target) -> Json:
    return {}


def location_of(context: CallContext, target: Target) -> str:
    return context.objects(target).location_id


def _instance_id(context: CallContext, target: Target) -> str:
    return str(context.objects(target).device.instance_id)


def location_body(**more: Json) -> Body:
    return lambda context, target: {"locationId": location_of(context, target)} | more


def _id_of(name: str, field: str) -> Body:
    return lambda context, target: {name: str(getattr(context.objects(target), field))}


def _challenge(context: CallContext, target: Target) -> Json:
    return new_device(location_of(context, target))


def _enroll(context: CallContext, target: Target) -> Json:
    objects, key_id = context.objects(target), context.credential.key_id or uuid.uuid4()
    return context.maker.enroller.answer_to_challenge(
        key_id, objects.organization_id, objects.location_id
    )


def _binding(**more: Json) -> Body:
    return lambda context, target: (
        {"bindingId": str(context.objects(target).device.binding_id)} | more
    )


def _acknowledge(context: CallContext, target: Target) -> Json:
    device = context.objects(target).device
    binding, request = str(device.binding_id), str(device.request_id)
    return {"bindingId": binding, "requestId": request, "status": "received"}


def _pending_request(context: CallContext, **selection: Json) -> Json:
    until = context.maker.enroller.now + timedelta(days=1)
    return {"kind": "application", "until": until.strftime("%Y-%m-%dT%H:%M:%S.000Z")} | selection


DEVICE_CALLS: Final = {
    routes.CURRENT: ((NEWEST_DEVICE, _nothing, lambda c, t: c.device(t).binding_id),),
    routes.CHALLENGE: ((LOCATION_ID, _challenge, None),),
    routes.ENROLL: ((OBJECT, _enroll, None),),
    routes.HEARTBEAT: ((OBJECT, _binding(foreground=False), None),),
    routes.ACKNOWLEDGE: ((OBJECT, _acknowledge, None),),
    routes.SUBMIT_RESULT: (
        (OBJECT, lambda c, t: submission(c.objects(t).device.binding_id), None),
        # This call names an existing report. The service checks the access to the report in
        # addition to the access to the binding.
        (
            OBJECT,
            lambda c, t: submission(c.objects(t).device.binding_id, c.objects(t).report_id),
            None,
        ),
    ),
    routes.ON_COMMANDS: ((LIST, _nothing, lambda c, t: c.device(t).request_id),),
}
OPERATOR_CALLS: Final = {
    routes.CREATE_REQUEST: (
        (OBJECT, lambda c, t: {"instanceId": _instance_id(c, t), "kind": "network"}, None),
    ),
    routes.LIST_DEVICES: ((LIST, _nothing, _instance_id),),
    routes.DEVICE_DETAIL: ((OBJECT, lambda c, t: {"instanceId": _instance_id(c, t)}, None),),
    routes.REPORT_DETAIL: ((OBJECT, _id_of("reportId", "report_id"), None),),
    routes.REVOKE: (
        (OBJECT, lambda c, t: {"instanceId": str(c.objects(t).device_to_revoke.instance_id)}, None),
    ),
}
SILENCE: Final = {
    "locationId": None,
    "instanceId": None,
    "rule": None,
    "since": None,
    "until": "2100-01-01",
    "reason": "",
}
RULE: Final = {
    "condition": "offline",
    "argument": "",
    "locationId": None,
    "severity": "info",
    "forMinutes": 9,
    "enabled": True,
}
ROUTE: Final = {
    "id": None,
    "name": "On call",
    "kind": "webhook",
    "target": "https://hooks.example.com/in",
    "severities": [],
    "locations": [],
    "groupMinutes": 0,
    "digest": False,
    "enabled": True,
}
CONSOLE_CALLS: Final = {
    CONSOLE + "overview": (("reads", LIST, lambda c, t: {"size": 200}, _instance_id),),
    CONSOLE + "summary": (("reads", LIST, _nothing, location_of),),
    CONSOLE + "healths": (("reads", LIST, _nothing, _instance_id),),
    CONSOLE + "printers": (("reads", LIST, _nothing, _instance_id),),
    CONSOLE + "incidents": (("reads", LIST, _nothing, location_of),),
    CONSOLE + "findings": (("reads", LIST, _nothing, location_of),),
    CONSOLE + "findings/devices": (("reads", LIST, _nothing, location_of),),
    CONSOLE + "findings/printers": (("reads", LIST, _nothing, location_of),),
    CONSOLE + "reports": (("reads", LIST, _nothing, lambda c, t: c.objects(t).report_id),),
    CONSOLE + "venues": (("reads", LIST, _nothing, location_of),),
    LOCATION_SETTINGS: (("reads", LIST, _nothing, location_of),),
    CONSOLE + "device": (("reads", OBJECT, lambda c, t: {"instanceId": _instance_id(c, t)}, None),),
    CONSOLE + "changes": (
        (
            "reads",
            LIST,
            lambda c, _t: {"instanceIds": [_instance_id(c, target) for target in TARGETS]},
            _instance_id,
        ),
    ),
    "/console/report": (("reads", OBJECT, _id_of("reportId", "report_id"), None),),
    "/console/report-table": (
        (
            "reads",
            OBJECT,
            lambda c, t: {"reportId": str(c.objects(t).report_id), "table": "printers"},
            None,
        ),
    ),
    "/console/sales-table": (
        (
            "reads",
            LOCATION_WITH_SALES,
            lambda c, t: {"locationId": location_of(c, t), "period": "today"},
            None,
        ),
    ),
    ALERTS: (("reads", LIST, lambda c, t: {"size": 200}, lambda c, t: c.objects(t).alert_id),),
    f"{ALERTS}/silences": (("reads", LIST, _nothing, lambda c, t: c.objects(t).silence_id),),
    f"{ALERTS}/rules": (("reads", NOTHING, _nothing, None),),
    f"{ALERTS}/acknowledge": (("writes", OBJECT, _id_of("alertId", "alert_id"), None),),
    f"{ALERTS}/silences/add": (
        ("writes", LOCATION, lambda c, t: SILENCE | {"locationId": location_of(c, t)}, None),
    ),
    f"{ALERTS}/silences/end": (("writes", OBJECT, _id_of("silenceId", "silence_to_end_id"), None),),
    CONSOLE + "pending-requests": (
        (
            "writes",
            OBJECT,
            lambda c, t: _pending_request(c, instanceIds=[_instance_id(c, t)]),
            None,
        ),
        ("writes", LOCATION_ID, lambda c, t: _pending_request(c, location=location_of(c, t)), None),
    ),
    CONSOLE + "pending-requests/cancel": (
        ("writes", OBJECT, _id_of("pendingRequestId", "pending_request_id"), None),
    ),
}
MAINTENANCE: Final = {"instanceId": None, "since": None, "until": "2100-01-01", "reason": ""}


LOCATION_CALLS: Final = {
    f"{LOCATION_SETTINGS}/add": (
        (
            ORGANIZATION,
            lambda _c, _t: {"locationId": None, "name": "Quay", "timeZone": "Europe/Riga"},
        ),
    ),
    f"{LOCATION_SETTINGS}/name": ((LOCATION, location_body(name="Quay")),),
    f"{LOCATION_SETTINGS}/hours": (
        (LOCATION, location_body(timeZone="Europe/Riga", openingHours=["Mon-Fri 08:00-22:00"])),
    ),
    f"{LOCATION_SETTINGS}/maintenance": (
        (LOCATION, location_body(**MAINTENANCE)),
        (
            LOCATION,
            lambda c, t: location_body(**MAINTENANCE)(c, t) | {"instanceId": _instance_id(c, t)},
        ),
    ),
    f"{LOCATION_SETTINGS}/end-maintenance": ((LOCATION, location_body(instanceId=None)),),
    f"{ALERTS}/rules/set": (
        (LOCATION, lambda c, t: RULE | {"locationId": location_of(c, t)}),
        (ORGANIZATION, lambda _c, _t: RULE),
    ),
    f"{ALERTS}/rules/remove": (
        (LOCATION, lambda c, t: {"name": "offline", "locationId": location_of(c, t)}),
        (ORGANIZATION, lambda _c, _t: {"name": "offline", "locationId": None}),
    ),
    f"{LOCATION_SETTINGS}/name-organization": ((ORGANIZATION, lambda _c, _t: {"name": "Harbour"}),),
}
PROFILE_CALLS: Final = {
    PROFILE: (("profile", NOTHING, _nothing),),
    f"{PROFILE}/end-session": (
        ("profile", USER_OBJECT, lambda c, t: {"sessionId": str(c.user_objects(t).session_id)}),
    ),
    f"{PROFILE}/create-key": (
        ("profile", LOCATION, lambda c, t: NEW_KEY | {"locations": [location_of(c, t)]}),
        (
            "profile: create a key that writes",
            LOCATION,
            lambda c, t: NEW_KEY | {"canWrite": True, "locations": [location_of(c, t)]},
        ),
    ),
    f"{PROFILE}/revoke-key": (
        ("profile", USER_OBJECT, lambda c, t: {"keyId": str(c.user_objects(t).key_id)}),
    ),
    f"{PROFILE}/key-devices": (
        ("profile", USER_OBJECT, lambda c, t: {"keyId": str(c.user_objects(t).key_id)}),
    ),
    f"{PROFILE}/choose-organization": (
        (
            "profile",
            "an organization, or one of its goods",
            lambda c, t: {"organizationId": c.objects(t).organization_id},
        ),
    ),
    FACTOR: (("profile", NOTHING, _nothing),),
    f"{PROFILE}/grants": (("profile", NOTHING, _nothing),),
    f"{PROFILE}/end-grant": (
        ("profile", USER_OBJECT, lambda c, t: {"grantId": str(c.user_objects(t).grant_id)}),
    ),
}


def _code(step: int) -> Body:
    """Return a function that returns the user's one-time code of a time step.

    ``step`` is 0 for the current step, -1 for the previous step, and 1 for the next step. If the
    user has no second factor, the function creates an unconfirmed one. The service accepts each
    code once, and only in the order of the steps.
    """

    def body(context: CallContext, _target: Target) -> Json:
        own, session, now = context.credential.owned, context.maker.session, context.maker.now
        row = None if own is None else session.get(SignInSession, own.session_id)
        if row is None:
            return {"code": "000000"}
        factor = session.get(SecondFactor, row.user_id) or codes.begin(session, row.user_id, now)
        current_step = int(now.timestamp()) // codes.STEP_S
        return {"code": pyotp.TOTP(factor.secret).generate_otp(current_step + step)}

    return body


# Calls of the profile that a session makes after all its other calls, in this order.
PROFILE_LAST: Final = {
    f"{FACTOR}/confirm": (("profile", NOTHING, _code(-1)),),
    RECOVERY_CODES: (("profile", NOTHING, _code(0)),),
    REMOVE: (("profile", NOTHING, _code(1)),),
    f"{FACTOR}/begin": (("profile", NOTHING, _nothing),),
    # This call is the last one, because it ends the other sessions of the user.
    CHANGE_PASSWORD: (
        (
            "profile",
            NOTHING,
            lambda _c, _t: {"oldPassword": PASSWORD, "newPassword": PASSWORD + " and more"},
        ),
    ),
}


def _member(context: CallContext, target: Target) -> str:
    """Return the id of the member that a call changes or removes.

    For a session and the target ``own``, this is a new member, so that the call can remove the
    member. In all other cases it is a user of ``others``.
    """
    if target == "own" and context.credential.owned is not None:
        return str(context.maker.add_user("viewer"))
    return str(context.others[target].user_id)


def _invitation(context: CallContext, target: Target) -> Json:
    if target == "own" and context.credential.owned is not None:
        return {"invitationId": str(context.maker.invitation(context.credential.owned.user_id))}
    return {"invitationId": str(context.others[target].invitation_id)}


_NEW_MEMBER: Final = {"role": "viewer", "locations": []}
MEMBER_CALLS: Final = {
    MEMBERS: ((ORGANIZATION, _nothing),),
    POLICY: ((ORGANIZATION, _nothing),),
    f"{POLICY}/change": (
        (ORGANIZATION, lambda _c, _t: {"acceptsPasswords": True, "requiresSecondFactor": False}),
    ),
    f"{MEMBERS}/change": ((MEMBER, lambda c, t: _NEW_MEMBER | {"userId": _member(c, t)}),),
    f"{MEMBERS}/remove": ((MEMBER, lambda c, t: {"userId": _member(c, t)}),),
    f"{MEMBERS}/invite": (
        (ORGANIZATION, lambda _c, _t: _NEW_MEMBER | {"email": f"{uuid.uuid4()}@example.com"}),
    ),
    f"{MEMBERS}/revoke-invitation": ((MEMBER, _invitation),),
    CONSOLE + "audit": ((ORGANIZATION, _nothing),),
    ALERT_WEBHOOK: ((ORGANIZATION, _nothing),),
    f"{ALERT_WEBHOOK}/set": (
        (ORGANIZATION, lambda _c, _t: {"url": "https://hooks.example.com/in"}),
    ),
    f"{ALERTS}/routes/test": ((ORGANIZATION, lambda _c, _t: {"routeId": "webhook"}),),
    f"{ALERTS}/routes": ((ORGANIZATION, _nothing),),
    f"{ALERTS}/routes/set": ((ORGANIZATION, lambda _c, _t: ROUTE),),
    f"{ALERTS}/deliveries": ((ORGANIZATION, _nothing),),
    f"{ALERTS}/routes/remove": ((ORGANIZATION, lambda _c, _t: {"routeId": "webhook"}),),
    f"{ALERT_WEBHOOK}/remove": ((ORGANIZATION, _nothing),),
}
ADMINISTRATION_READS: Final = {
    MEMBERS, POLICY, CONSOLE + "audit", ALERT_WEBHOOK, f"{ALERTS}/routes", f"{ALERTS}/deliveries",
}  # fmt: skip
SUPPORT_CALLS: Final = {
    support.CONTACT: ((NOTHING, _nothing, None),),
    support.INSPECT: (
        ("a support link to read", lambda c, t: {"token": c.objects(t).link_token}, None),
        (NOTHING, lambda c, _t: {"token": c.new_link()}, None),
    ),
    support.CONFIRM: (
        (
            "an organization to link with support",
            lambda c, t: {"token": c.new_link(), "organizationId": c.objects(t).organization_id},
            None,
        ),
    ),
    support.DISCONNECT: (
        (
            "a support link to end",
            lambda c, t: {"token": c.new_link(c.objects(t).organization_id)},
            None,
        ),
    ),
}
LAST_WEEK: Final = {"period": "last7"}
_BY_LOCATION: Final = {"period": "last7", "groupBy": ["location"]}


def _records_query(dataset: str) -> Body:
    return lambda c, t: {"dataset": dataset, "filters": {"locations": [location_of(c, t)]}}


def _catalog_id(table: str) -> Mark:
    return lambda context, target: context.objects(target).catalog[table]


TOOL_CALLS: Final[Mapping[str, tuple[tuple[str, Body, Mark | None], ...]]] = {
    "business_context": ((LIST, _nothing, location_of),),
    "describe_business_data": ((NOTHING, _nothing, None),),
    "query_sales": (
        (LOCATION_WITH_SALES, lambda c, t: LAST_WEEK | {"locations": [location_of(c, t)]}, None),
        (LIST, lambda _c, _t: _BY_LOCATION, location_of),
    ),
    "read_business_records": (
        *(
            (LOCATION_WITH_SALES, _records_query(name), None)
            for name in ("sales", "refunds", "employees", "pointsOfSale")
        ),
        *(
            (LOCATION_ID, _records_query(name), None)
            for name in ("devices", "deviceRequests", "deviceReports")
        ),
        *(
            (LIST, lambda _c, _t, name=name: {"dataset": name, "limit": 100}, location_of)
            for name in (
                "sales", "employees", "pointsOfSale", "devices", "deviceRequests", "deviceReports",
            )
        ),
    ),
    "read_merchant_data": (
        *(
            (LIST, lambda _c, _t, section=section: {"section": section}, location_of)
            for section in ("locations", "pointsOfSale", "employees")
        ),
        (
            ORGANIZATION_LIST,
            lambda _c, _t: {"section": "organization"},
            lambda c, t: c.objects(t).organization_id,
        ),
        *(
            (
                ORGANIZATION_LIST,
                lambda _c, _t, section=section: {"section": section},
                _catalog_id(table),
            )
            for section, table in (
                ("fees", "FeeItem"), ("uoms", "UnitOfMeasure"), ("paymentMethods", "PaymentMethod"),
            )
        ),
    ),
    "read_catalog": ((ORGANIZATION_LIST, _nothing, _catalog_id("Good")),),
    "set_catalog_availability": (
        (
            "a catalog entry to change",
            lambda c, t: {"goodId": str(c.objects(t).catalog["Good"]), "status": "active"},
            None,
        ),
    ),
}  # fmt: skip
RETAIL_CALLS: Final[Mapping[tuple[str, str], tuple[str, Body, Mark | None]]] = {
    ("GET", retail.GOODS): (ORGANIZATION_LIST, _nothing, _catalog_id("Good")),
    ("GET", retail.CATEGORIES): (ORGANIZATION_LIST, _nothing, _catalog_id("Category")),
    ("GET", retail.UOMS): (ORGANIZATION_LIST, _nothing, _catalog_id("UnitOfMeasure")),
    ("GET", retail.FEES): (ORGANIZATION_LIST, _nothing, _catalog_id("FeeItem")),
    ("GET", retail.EMPLOYEES): (NOTHING, _nothing, None),
    ("GET", retail.POINTS_OF_SALE): (NOTHING, _nothing, None),
    ("GET", retail.SALES): (
        LIST,
        lambda _c, _t: {"?status": "completed"},
        lambda c, t: c.objects(t).sale_id,
    ),
    ("GET", retail.SALE): (OBJECT, lambda c, t: {"sale_id": c.objects(t).sale_id}, None),
    ("GET", retail.GOOD): (
        "an organization, or one of its goods",
        lambda c, t: {"good_id": c.objects(t).catalog["Good"]},
        None,
    ),
    ("POST", retail.GOODS): (
        NOTHING,
        lambda c, t: {
            "name": "Flat white",
            "uom_id": str(c.objects(t).catalog["UnitOfMeasure"]),
            "vat": {"fee_item_id": str(c.objects(t).catalog["FeeItem"])},
            "variations": [{}],
        },
        None,
    ),
}
