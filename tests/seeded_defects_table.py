"""The defects that `make seeded-defects` plants, one at a time.

Each defect is a small mistake that a developer could make and that seems correct at first sight. A
defect belongs in this table only if no linter or type checker reports it.
"""

from typing import Final, NamedTuple


class Defect(NamedTuple):
    """A defect: ``after`` replaces ``before``, which occurs exactly once in ``file``. ``hint``
    names the tests that should fail.
    """

    kind: str
    description: str
    file: str
    before: str
    after: str
    hint: str


DEFECTS: Final = (
    # ------------------------------------------------------------------ order of writes
    Defect(
        "order of writes", "a request is acknowledged before it is safe on the disk",
        "agent/adapters/storage/journal.py",
        "transaction(Failpoint.REQUEST_ADDED) as",
        "transaction(Failpoint.REQUEST_ADDED, durably=False) as",
        "tests/unit/agent/adapters/storage/test_journal.py",
    ),
    Defect(
        "order of writes",
        "the journal records an acknowledgement before the service has received it",
        "agent/tasks/submit.py",
        '        await self.session.acknowledge(entry, "running")\n'
        "        self.ledger.journal.note_running_acknowledged(entry.request_id)\n",
        "        self.ledger.journal.note_running_acknowledged(entry.request_id)\n"
        '        await self.session.acknowledge(entry, "running")\n',
        "tests/unit/agent/tasks/test_submit.py",
    ),
    Defect(
        "order of writes", "the outbox row is written in a transaction of its own",
        "agent/adapters/storage/ledger.py",
        "            self.outbox.add_within(connection, report, now)\n",
        "        with self._database.transaction(Failpoint.REPORT_HANDED_OVER) as connection:\n"
        "            self.outbox.add_within(connection, report, now)\n",
        "tests/unit/agent/adapters/storage",
    ),
    Defect(
        "order of writes", "the new binding is announced to the other tasks before it is stored",
        "agent/tasks/session/binding_state.py",
        '        self._save(self.record.model_copy(update={"binding": binding,'
        ' "is_revoked": False}))\n'
        "        self._is_bound.set()\n",
        "        self._is_bound.set()\n"
        '        self._save(self.record.model_copy(update={"binding": binding,'
        ' "is_revoked": False}))\n',
        "tests/unit/agent/tasks/session/test_enrollment.py",
    ),
    Defect(
        "lifecycle", "a collection that died with the agent is tried one time too many",
        "agent/rules/lifecycle.py",
        "is_retry_allowed = attempt < MAX_ATTEMPTS and",
        "is_retry_allowed = attempt <= MAX_ATTEMPTS and",
        "tests/unit/agent/rules/test_lifecycle.py",
    ),
    Defect(
        "quarantine", "a damaged device record is overwritten instead of set aside",
        "agent/adapters/storage/device_record.py",
        "            self._state.quarantine_file(self._path)\n", "",
        "tests/unit/agent/adapters/storage/test_device.py",
    ),
    # ------------------------------------------------------------------ calls to the service
    Defect(
        "retry", "Retry-After is ignored after the machine slept or its clock was set",
        "agent/tasks/session/circuit_breaker.py",
        "            if not breaker.has_retry_after:\n                breaker.retry_at",
        "            if not breaker.is_closed:\n                breaker.retry_at",
        "tests/unit/agent/tasks/session/test_circuit_breaker.py",
    ),
    Defect(
        "circuit breaker", "calls that fail together count as several failures",
        "agent/tasks/session/circuit_breaker.py",
        "if not self._fails_alone(breaker) and shared_generation == self._shared.generation:",
        "if not self._fails_alone(breaker):",
        "tests/unit/agent/tasks/session/test_circuit_breaker.py",
    ),
    Defect(
        "expiry", "the clock difference has the wrong sign when expiresAt is compared",
        "agent/rules/clock_skew.py",
        "local_time - timestamp >= -self.offset", "local_time - timestamp >= self.offset",
        "tests/unit/agent/rules/test_clock_skew.py",
    ),
    Defect(
        "expiry", "the Date header of a captive portal is used as the time of the service",
        "agent/adapters/service_client.py",
        "if service_time is not None and not isinstance(error, ServiceUnavailable):",
        "if service_time is not None:",
        "tests/unit/agent/adapters/test_service_client.py",
    ),
    Defect(
        "hostile service", "the agent keeps the cookies of the service, and sends them back",
        "agent/adapters/http_client.py",
        "            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),\n", "",
        "tests/scenario/trust/test_stored_replies.py",
    ),
    Defect(
        "hostile service", "the agent stores an enrollment that it cannot read at its next start",
        "agent/adapters/service_client.py",
        "RECORD_MAX_BYTES: Final = 131_072", "RECORD_MAX_BYTES: Final = 2_097_152",
        "tests/scenario/trust/test_stored_replies.py",
    ),
    Defect(
        "hostile service", "redirects of the service are followed",
        "agent/adapters/http_client.py",
        "follow_redirects=False,", "follow_redirects=True,",
        "tests/scenario/trust/test_hostile_effects.py",
    ),
    Defect(
        "revocation", "the heartbeats of a revoked device are accepted",
        "controlplane/remote_control/heartbeats.py",
        "where(Device.binding_id.in_(binding_ids), Device.revoked_at.is_(None))",
        "where(Device.binding_id.in_(binding_ids))",
        "tests/unit/controlplane/remote_control/test_enrollment.py",
    ),
    Defect(
        "health", "a problem is shown although its cause is shown as well",
        "agent/rules/health.py",
        "if not any(cause in by_code for cause", "if not all(cause in by_code for cause",
        "tests/unit/agent/rules/test_binding_and_health.py",
    ),
    # ------------------------------------------------------------------ limits
    Defect(
        "limit", "a length is counted in characters instead of UTF-16 code units",
        "agent/wire/text.py",
        "if self.least <= len(text) <= self.most // 2:", "if self.least <= len(text) <= self.most:",
        "tests/contract/test_limits.py",
    ),
    Defect(
        "limit", "a list that was cut is one item longer than the limit",
        "agent/rules/reports/fit.py",
        "kept_items = everything[: maximum - 1]", "kept_items = everything[:maximum]",
        "tests/unit/agent/rules/reports/test_fit.py",
    ),
    Defect(
        "limit", "a body without a declared length may have any size",
        "controlplane/web/admission.py",
        "                if len(body) > limit:\n",
        "                if declared and len(body) > limit:\n",
        "tests/unit/controlplane/web/test_auth.py",
    ),
    Defect(
        "rate limit", "a successful sign-in also clears the failed sign-ins of its network",
        "controlplane/accounts/throttle.py",
        "delete(SignInFailure).where(SignInFailure.subject == attempt.account)",
        "delete(SignInFailure).where("
        "SignInFailure.subject.in_((attempt.account, attempt.network)))",
        "tests/unit/controlplane/accounts/test_sign_in.py",
    ),
    # ------------------------------------------------------------------ untrusted text
    Defect(
        "escape", "the reason of a verdict is written into the HTML report unescaped",
        "agent/presentation/page/templates/network.html",
        "<p class=\"reason\">{{ row.reason }}", "<p class=\"reason\">{{ row.reason | safe }}",
        "tests/unit/agent/presentation/page/test_html.py",
    ),
    Defect(
        "escape", "control characters reach the terminal if all of the text is ASCII",
        "agent/presentation/plain_text.py",
        '    clean_text = without_controls(" ".join(',
        '    if text.isascii() and "\\n" not in text:\n'
        "        return text.strip()\n"
        '    clean_text = without_controls(" ".join(',
        "tests/unit/agent/presentation/test_plain_text.py",
    ),
    Defect(
        "escape", "a path with a line break writes a second line into the access log",
        "controlplane/web/middleware.py",
        r'_NOT_PLAIN = re.compile(r"[^\x21-\x7e]")', r'_NOT_PLAIN = re.compile(r"[^\x21-\x7e\s]")',
        "tests/unit/controlplane/web/observability/test_logs.py",
    ),
    Defect(
        "redaction", "tracebacks are written to the log with the secrets in them",
        "agent/logs/filters.py",
        "            record.exc_text = redact(record.exc_text)\n",
        "            record.exc_text = str(record.exc_text)\n",
        "tests/unit/agent/redaction/test_outputs.py",
    ),
    Defect(
        "redaction", "a secret inside a longer base64 text is found at one alignment only",
        "agent/redaction/forms.py",
        "    for before in range(3):\n", "    for before in range(1):\n",
        "tests/unit/agent/redaction/test_redactor.py",
    ),
    # ------------------------------------------------------------------ the network
    Defect(
        "scan", "an address of the shared range 100.64.0.0/10 is scanned without being configured",
        "collectors/network/scan/targets.py",
        "if any(network.subnet_of(known) for known in OWN_RANGES):",
        "if any(network.subnet_of(known) for known in SCANNABLE_RANGES):",
        "tests/unit/collectors/network/scan/test_targets.py",
    ),
    Defect(
        "scan", "a raw print port receives a query, which prints paper",
        "collectors/network/questions/questions.py",
        '    631: "ipp",', '    631: "ipp",\n    9100: "ipp",',
        "tests/unit/collectors/network/questions/test_questions.py",
    ),
    Defect(
        "scan", "a payment terminal is contacted after it has got another address",
        "collectors/shared/watched_devices.py",
        "return host[0] in self.addresses or host[1] in self.macs",
        "return host[0] in self.addresses",
        "tests/unit/collectors/network/scan/test_payment_terminals.py",
    ),
    Defect(
        "matching", "the first try of a printer's port decides instead of the last",
        "collectors/network/matching/symptoms.py",
        "return self.attempts[-1] if", "return self.attempts[0] if",
        "tests/unit/collectors/network/test_collector.py",
    ),
    Defect(
        "mDNS", "the memory that was counted for a replaced record is not released",
        "collectors/network/mdns/records.py",
        "self._reserve(-_cost(key, table.pop(key)))", "table.pop(key)",
        "tests/unit/collectors/network/mdns/test_records.py",
    ),
    # ------------------------------------------------------------------ doctor, configuration
    Defect(
        "doctor", "a device key that its group can read passes the check",
        "agent/doctor/checks/storage.py",
        "mode & (stat.S_IRWXG | stat.S_IRWXO)", "mode & stat.S_IRWXO",
        "tests/unit/agent/doctor",
    ),
    Defect(
        "configuration", "plain http is accepted for names without a domain and names in .local",
        "agent/config/model.py",
        'if parts.scheme == "http" and not is_loopback(parts.hostname):\n'
        '        raise ValueError("must be https',
        'if parts.scheme == "http" and "." in parts.hostname.removesuffix(".local") and '
        "not is_loopback(parts.hostname):\n"
        '        raise ValueError("must be https',
        "tests/unit/agent/config/test_file.py",
    ),
    # ------------------------------------------------------------------ permissions
    Defect(
        "permission", "the API key of a viewer may write",
        "controlplane/operation/permissions.py",
        "can_write = row.can_write and row.role in WRITING_ROLES\n", "can_write = row.can_write\n",
        "tests/unit/controlplane/accounts/test_live_permissions.py",
    ),
    Defect(
        "permission", "a pending request of a member who became a viewer is still dispatched",
        "controlplane/operation/permissions.py",
        "        member.role in WRITING_ROLES,\n", "        True,\n",
        "tests/unit/controlplane/accounts/test_live_permissions.py",
    ),
    Defect(
        "permission", "a key whose locations the member has lost sees every location",
        "controlplane/operation/caller.py",
        "return chosen_locations & permitted_locations or NOWHERE",
        "return chosen_locations & permitted_locations",
        "tests/unit/controlplane/accounts/test_live_permissions.py",
    ),
    Defect(
        "tenant", "the sales of another organization can be read by their id",
        "controlplane/retail/sales.py",
        "        _sales.id == sale_id,\n"
        "        _sales.organization_id == context.organization_id,\n",
        "        _sales.id == sale_id,\n",
        "tests/unit/controlplane/retail/test_sales.py",
    ),
    Defect(
        "tenant", "the report of another organization is confirmed to any caller who knows its id",
        "controlplane/remote_control/submission.py",
        '    context.require_access(report.organization_id, report.location_id, "report")\n', "",
        "tests/unit/controlplane/remote_control/test_submission.py",
    ),
    Defect(
        "idempotency", "a repeated report with a different outcome counts as the same report",
        "controlplane/remote_control/submission.py",
        "if known_report.body_hash != submission.body_hash:",
        "if known_report.payload_hash != submission.payload_hash:",
        "tests/unit/controlplane/remote_control/test_submission.py",
    ),
    Defect(
        "OAuth", "tokens are issued without the verifier of PKCE",
        "controlplane/accounts/oauth/authorization_server.py",
        "self.register_grant(CodeGrant, [S256(required=True), ResourceCheck()])",
        "self.register_grant(CodeGrant, [ResourceCheck()])",
        "tests/unit/controlplane/accounts/oauth/test_codes.py",
    ),
    Defect(
        "OAuth", "a code that is used twice does not end the first grant",
        "controlplane/accounts/oauth/grants.py",
        "        if grant is not None:\n            end_by_id(session, grant.id, grant.user_id)\n",
        "",
        "tests/unit/controlplane/accounts/oauth/test_codes.py",
    ),
    Defect(
        "session", "scripts can read the session cookie",
        "controlplane/web/accounts/cookies.py",
        "Path=/; HttpOnly; SameSite", "Path=/; SameSite",
        "tests/unit/controlplane/accounts/test_sign_in.py",
    ),
    Defect(
        "CSRF", "an origin that only begins like the service's own is accepted",
        "controlplane/web/accounts/cookies.py",
        "return origin.lower() == own_origin.lower()",
        "return origin.lower().startswith(own_origin.lower())",
        "tests/unit/controlplane/accounts/test_sign_in.py",
    ),
    # ------------------------------------------------------------------ money and time
    Defect(
        "money", "half cents are rounded to the even cent",
        "controlplane/figures/money.py",
        "return (2 * amount + divisor) // (2 * divisor)", "return round(amount / divisor)",
        "tests/unit/controlplane/figures/test_money.py",
    ),
    Defect(
        "money", "the smallest remainders of a discount get the cents that are left over",
        "controlplane/figures/money.py",
        "key=lambda i: (-(amount * weights[i] % weight_sum), i)",
        "key=lambda i: (amount * weights[i] % weight_sum, i)",
        "tests/unit/controlplane/figures/test_money.py",
    ),
    Defect(
        "money", "the VAT of a line does not consider its share of the sale's discount",
        "controlplane/merchant/sales.py",
        "tax_of(line.article, total - share)", "tax_of(line.article, total)",
        "tests/unit/controlplane/merchant/test_writing.py",
    ),
    Defect(
        "rollup", "a refund is counted in the hour of its sale",
        "controlplane/merchant/contributions.py",
        "contributions.add(HourRollup, refund_key.hour_key, hour_sums)",
        "contributions.add(HourRollup, sale_key.hour_key, hour_sums)",
        "tests/unit/controlplane/figures/test_recount.py",
    ),
    Defect(
        "time zone", "the day of a clock change ends an hour too early or too late",
        "controlplane/figures/local_time.py",
        "midnight = middle - _offset(zone, start)", "midnight = middle - _offset(zone, middle)",
        "tests/unit/controlplane/figures/test_local_time.py",
    ),
    # ------------------------------------------------------------------ lists
    Defect(
        "cursor", "the cursor of one listing is accepted for another listing",
        "controlplane/operation/cursors.py",
        "if digest != _digest(listing) or expires_s <= self.now.timestamp():",
        "if expires_s <= self.now.timestamp():",
        "tests/unit/controlplane/remote_control/test_cursors.py",
    ),
    Defect(
        "cursor", "a cursor with a forged signature is accepted",
        "controlplane/operation/cursors.py",
        "if not hmac.compare_digest(signature, self._sign(body)):",
        "if len(signature) != _SIGNATURE_BYTES:",
        "tests/unit/controlplane/retail/test_sales.py",
    ),
    Defect(
        "cursor", "sales with the same timestamp are repeated if the newest come first",
        "controlplane/operation/paging.py",
        "is_same = and_(self.column == value, self._beyond(self.position, sort_key.position))",
        "is_same = and_(self.column == value, self.position > sort_key.position)",
        "tests/unit/controlplane/retail/test_sales.py",
    ),
    Defect(
        "cursor", "one row is lost between two pages",
        "controlplane/operation/paging.py",
        "order.sort_key_of(rows[limit - 1])", "order.sort_key_of(rows[limit])",
        "tests/unit/controlplane/retail/test_goods.py",
    ),
    # ------------------------------------------------------------------ alerts
    Defect(
        "alert", "a firing alert loses its `inactive_since` if its condition is unknown",
        "controlplane/alerts/rules.py",
        "return state if state.is_firing else replace(state, active_since=None)",
        "return replace(state, active_since=None, inactive_since=None)",
        "tests/unit/controlplane/alerts/test_rules.py",
    ),
    Defect(
        "alert", "devices in maintenance count as devices that should be online",
        "controlplane/alerts/evaluation.py",
        "        device_count += not is_in_maintenance\n", "        device_count += 1\n",
        "tests/unit/controlplane/alerts/test_rules.py",
    ),
    Defect(
        "alert", "offline alerts fire while the outage of their whole location is firing",
        "controlplane/alerts/rules.py",
        "return self.is_active or self.is_firing or self.is_flapping",
        "return self.is_active or self.is_flapping",
        "tests/unit/controlplane/alerts/test_rules.py",
    ),
)  # fmt: skip
