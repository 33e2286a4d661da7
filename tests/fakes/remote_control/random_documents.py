"""Random documents that a schema permits. The same seed always gives the same documents.

Only the keywords of JSON Schema that the transcribed schemas use are supported.
"""

import random
import uuid
from typing import Any

from tests.fakes.schemas.contract import UUID, Schema

FEW = 3
"""Maximum number of elements of a list. A text has at most this number of letters more than its
minimum. A smaller limit in the schema takes precedence."""


def random_document(schema: Schema, chance: random.Random) -> Any:
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return chance.choice(schema["enum"])
    if "anyOf" in schema:
        return random_document(chance.choice(schema["anyOf"]), chance)
    return {
        "object": _object,
        "array": _array,
        "string": _string,
        "integer": _integer,
        "number": lambda _, chance: chance.choice([0, -7, 0.42, 1e9]),
        "boolean": lambda _, chance: chance.random() < 0.5,
        "null": lambda _, __: None,
    }[schema["type"]](schema, chance)


def _object(schema: Schema, chance: random.Random) -> Any:
    parts = schema["properties"].items()
    return {
        name: random_document(part, chance)
        for name, part in parts
        if name in schema["required"] or chance.random() < 0.5
    }


def _array(schema: Schema, chance: random.Random) -> Any:
    count_max = min(FEW, schema.get("maxItems", FEW))
    return [random_document(schema["items"], chance) for _ in range(chance.randint(0, count_max))]


def _string(schema: Schema, chance: random.Random) -> Any:
    if schema == UUID:
        return str(uuid.UUID(int=chance.getrandbits(128)))
    length = chance.randint(schema.get("minLength", 0), schema.get("minLength", 0) + FEW)
    return "".join(chance.choices("aZ9 é厨🖨", k=length))[: schema.get("maxLength", length)]


def _integer(schema: Schema, chance: random.Random) -> Any:
    return chance.choice([schema["minimum"], schema["minimum"] + 1, schema["maximum"]])
