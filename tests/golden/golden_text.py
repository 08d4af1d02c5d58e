"""How the files of numbers are written."""

import json


def text(value, level=0, flat=False):
    """JSON with lists of plain values on one line; with `flat` dictionaries of plain values too."""
    indent = "  " * level
    is_plain = not isinstance(value, (dict, list)) or not any(
        isinstance(part, (dict, list)) for part in (value.values() if isinstance(value, dict) else value))
    if isinstance(value, dict) and not (flat and is_plain):
        members = [f"{indent}  {json.dumps(key)}: {text(member, level + 1, flat)}" for key, member in value.items()]
        return "{\n" + ",\n".join(members) + f"\n{indent}}}"
    if isinstance(value, list) and not is_plain:
        return "[\n" + ",\n".join(f"{indent}  {text(part, level + 1, flat)}" for part in value) + f"\n{indent}]"
    return json.dumps(value)
