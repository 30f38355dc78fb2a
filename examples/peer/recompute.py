#!/usr/bin/env python3
"""Recomputes every digest of a shared-task journal (protocol §5.10, §7.1) with the Python standard library alone.

It shares nothing with the Rust code: not its reader, not its writer, not its number format. Usage:

    python3 examples/peer/recompute.py examples/journals/written-here.json examples/peer/journals/journal-a.json

Prints one line a file; exits 1 if a digest does not hold, 2 if a file cannot be read.
"""

import hashlib
import json
import sys

ACTOR = [("kind", None), ("id", None)]
BODY = [(name, None) for name in
        ("kind", "digest", "bytes", "taint", "scope", "durability", "store?", "deletion_certificate?")]
ARTIFACT = [(name, None) for name in
            ("artifact_id", "ref", "media_type", "taint", "scope", "store", "deletion_certificate?")]
NOTE = [("note_id", None), ("kind", None), ("body_ref", BODY), ("author", ACTOR), ("created_at", None)]
DECISION = [("decision_id", None), ("state", None), ("reason", None)]
TASK = [("schema", None), ("task_id", None), ("rev", None), ("state", None), ("title", None), ("body_ref", BODY),
        ("artifacts", [ARTIFACT]), ("notes", [NOTE]), ("open_decisions", [DECISION]), ("updated_by", ACTOR),
        ("updated_at", None)]
EVENT = [("schema", None), ("event_id", None), ("task_id", None), ("prev_event", None), ("event_kind", None),
         ("actor", ACTOR), ("base_rev", None), ("next_rev", None), ("scope", None), ("durability", None),
         ("taint", None), ("patch_digest", None), ("verdict", None), ("reason", None), ("ts", None)]
ENTRY = [("event", EVENT), ("record", TASK), ("record_digest", None)]
JOURNAL = [("schema", None), ("task_id", None), ("initial", TASK), ("entries", [ENTRY]), ("digest", None)]

SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


def string(text):
    out = []
    for char in text:
        if char in SHORT:
            out.append(SHORT[char])
        elif char < " " or char in "<>&\u2028\u2029":
            out.append("\\u%04x" % ord(char))
        else:
            out.append(char)
    return '"' + "".join(out) + '"'


def ecmascript(number):
    """A double as ECMAScript prints it; Python's repr has the same shortest digits, laid out otherwise."""
    if number == 0:
        return "0"
    sign, text = ("-", repr(-number)) if number < 0 else ("", repr(number))
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len((whole + fraction).lstrip("0")))
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return "%s%se%s%d" % (sign, mantissa, "+" if point > 0 else "-", abs(point - 1))


def open_value(value):
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return string(value)
    if isinstance(value, (int, float)):
        return ecmascript(float(value))
    if isinstance(value, list):
        return "[" + ",".join(map(open_value, value)) + "]"
    return "{" + ",".join(string(name) + ":" + open_value(value[name]) for name in by_bytes(value)) + "}"


def by_bytes(names):
    return sorted(names, key=lambda name: name.encode())


def typed(value, shape):
    """The canonical bytes of a value whose members the schema orders; unknown members last, sorted."""
    if isinstance(shape, list) and shape and isinstance(shape[0], list):
        return "null" if value is None else "[" + ",".join(typed(item, shape[0]) for item in value) + "]"
    if shape is None:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else open_value(value)
    out, known = [], set()
    for name, inner in shape:
        optional, name = name.endswith("?"), name.rstrip("?")
        known.add(name)
        member = value.get(name)
        if optional and not member:
            continue
        if member is None and inner is None:
            member = ""
        out.append(string(name) + ":" + typed(member, inner))
    out += [string(name) + ":" + open_value(value[name]) for name in by_bytes(set(value) - known)]
    return "{" + ",".join(out) + "}"


def digest(value, shape):
    return "sha256:" + hashlib.sha256(typed(value, shape).encode()).hexdigest()


def check(journal):
    def rev(record):
        return digest(dict(record, rev=""), TASK)

    def holds(what, claimed, computed):
        if claimed != computed:
            raise ValueError("%s: %s, recomputed %s" % (what, claimed, computed))

    holds("initial.rev", journal["initial"]["rev"], rev(journal["initial"]))
    seen, before = {journal["initial"]["rev"]}, ""
    for number, entry in enumerate(journal["entries"] or []):
        event, record, at = entry["event"], entry["record"], "entry %d, " % number
        holds(at + "event.prev_event", event.get("prev_event", ""), before)
        holds(at + "record.rev", record["rev"], rev(record))
        holds(at + "event.next_rev", event["next_rev"], record["rev"])
        holds(at + "record_digest", entry["record_digest"], digest(record, TASK))
        if event["base_rev"] not in seen:
            raise ValueError(at + "event.base_rev was never a revision")
        seen.add(record["rev"])
        before = digest(event, EVENT)
    holds("digest", journal["digest"], digest(dict(journal, digest=""), JOURNAL))
    return len(journal["entries"] or [])


def main(paths):
    status = 0
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                journal = json.load(file)
        except (OSError, ValueError) as error:
            print("%s: %s" % (path, error), file=sys.stderr)
            return 2
        try:
            print("%s: %d entries, every digest recomputed" % (path, check(journal)))
        except (KeyError, TypeError, ValueError) as error:
            print("%s: %s" % (path, error))
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
