"""Random documents that a schema permits. The same seed always gives the same documents.

Only the keywords of JSON Schema that the transcribed schemas use are supported.
"""

import random
import uuid
from typing import Any

from tests.fakes.schemas.contract import UUID, Schema

FEW = 3
"""Maximum number of elements of a list. A text is at most this number of characters longer
than its minimum length. A smaller limit in the schema takes precedence."""


def random_document(schema: Schema, rng: random.Random) -> Any:
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "anyOf" in schema:
        return random_document(rng.choice(schema["anyOf"]), rng)
    return {
        "object": _object,
        "array": _array,
        "string": _string,
        "integer": _integer,
        "number": lambda _, rng: rng.choice([0, -7, 0.42, 1e9]),
        "boolean": lambda _, rng: rng.random() < 0.5,
        "null": lambda _, __: None,
    }[schema["type"]](schema, rng)


def _object(schema: Schema, rng: random.Random) -> Any:
    parts = schema["properties"].items()
    return {
        name: random_document(part, rng)
        for name, part in parts
        if name in schema["required"] or rng.random() < 0.5
    }


def _array(schema: Schema, rng: random.Random) -> Any:
    count_max = min(FEW, schema.get("maxItems", FEW))
    return [random_document(schema["items"], rng) for _ in range(rng.randint(0, count_max))]


def _string(schema: Schema, rng: random.Random) -> Any:
    if schema == UUID:
        return str(uuid.UUID(int=rng.getrandbits(128)))
    length = rng.randint(schema.get("minLength", 0), schema.get("minLength", 0) + FEW)
    return "".join(rng.choices("aZ9 é厨🖨", k=length))[: schema.get("maxLength", length)]


def _integer(schema: Schema, rng: random.Random) -> Any:
    return rng.choice([schema["minimum"], schema["minimum"] + 1, schema["maximum"]])
