"""A small JSON Schema validator, for the keywords that our schema uses: it lists every error, those of unions too."""

from collections.abc import Iterator
from typing import Any

KEYWORDS = {
    "$schema", "$defs", "$ref", "title", "description", "type", "required", "properties", "additionalProperties",
    "items", "enum", "const", "anyOf", "oneOf", "discriminator", "minimum", "maximum", "exclusiveMinimum", "default",
}  # fmt: skip
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}


def errors(value: Any, schema: dict[str, Any], root: dict[str, Any], at: str = "$") -> Iterator[str]:
    """Where and how `value` breaks the schema."""
    assert schema.keys() <= KEYWORDS, schema.keys() - KEYWORDS
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    if kinds := schema.get("anyOf", schema.get("oneOf")):
        # The errors by the kind that fits best.
        yield from min((list(errors(value, kind, root, at)) for kind in kinds), key=len)
    if "const" in schema and value != schema["const"]:
        yield f"{at}: not {schema['const']}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: not one of {schema['enum']}"
    if "type" in schema and not _is(value, schema["type"]):
        yield f"{at}: not {schema['type']}"
    elif isinstance(value, int | float) and not (
        schema.get("minimum", value) <= value <= schema.get("maximum", value)
        and value > schema.get("exclusiveMinimum", value - 1)
    ):
        yield f"{at}: out of range"
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from errors(item, schema.get("items", {}), root, f"{at}[{number}]")
    elif isinstance(value, dict):
        known = schema.get("properties", {})
        yield from (f"{at}: without {name}" for name in schema.get("required", ()) if name not in value)
        for name, item in value.items():
            if name in known:
                yield from errors(item, known[name], root, f"{at}.{name}")
            elif schema.get("additionalProperties") is False:
                yield f"{at}: has {name}"


def _is(value: Any, types: str | list[str]) -> bool:
    wanted = [types] if isinstance(types, str) else types
    return any(
        isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool)) for kind in wanted
    )
