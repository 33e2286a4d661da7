"""The OpenAPI document is a right one, and says what contract, code, client and docs say."""

import inspect
import json
import re
from typing import Any

import httpx2
import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from agent.wire import routes
from agent.wire.codec import encode
from controlplane.cli.errors import CommandError
from controlplane.client.operations import OperationsClient
from controlplane.openapi.areas import AREAS, OPERATIONS
from controlplane.openapi.document import document
from controlplane.openapi.operation import ANYWHERE, STATUSES
from controlplane.remote_control.registry import REMOTE_CONTROL
from controlplane.remote_control.submission import parse_submission
from tests.fixtures.payloads import application_snapshot, small_venue
from tests.paths import ROOT
