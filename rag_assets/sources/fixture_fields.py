"""Checks of single values in a fixture: each returns the sound value, or refuses and returns None.

JSON `null` is sound nowhere, so None never stands for a value. An unsound value is reported once,
at its own place; later checks skip what rests on it.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np

from rag_assets.canonical.contracts import MAX_DIMENSION
from rag_assets.canonical.text import normalize_text
from rag_assets.errors import InputError, Problem
from rag_assets.indexes.ranking import LARGEST_NORM, SMALLEST_NORM
from rag_assets.sources.strict_json import Faulty, excerpt

MIN_GRADE, MAX_GRADE = 1, 3
NORM_TOLERANCE = 1e-6

_INVISIBLE = {"Cc", "Cf", "Zs", "Zl", "Zp"}  # Unicode: controls, formats, separators
CONTROL_IN_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and line feed
_CONTROL_IN_TOKEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(slots=True)
class Reading:
    """What one reading of a file has found so far: its problems, and how each id is spelled."""

    file: str
    max_problems: int
    problems: list[tuple[tuple[int, int], Problem]] = field(default_factory=list)
    spellings: dict[tuple[str, str], tuple[str, Spot]] = field(default_factory=dict)
    look_alikes: set[tuple[str, str]] = field(default_factory=set)

    @property
    def full(self) -> bool:
        """One more problem than may be shown is known: looking further is of no use."""
        return len(self.problems) > self.max_problems

    def raise_if_refused(self) -> None:
        """Raises InputError with the problems in order of the file, if there are any."""
        if self.problems:
            shown = [p for _, p in sorted(self.problems, key=lambda entry: entry[0])]
            raise InputError(shown[: self.max_problems], truncated=self.full)


class Spot(NamedTuple):
    """A place in the file. Its words are made only when a problem needs them."""

    reading: Reading
    order: tuple[int, int]  # (section, record): problems are shown in this order
    steps: tuple[str | int, ...]
    record: object = None  # the raw record around it, for its name
    name_parts: tuple[tuple[str, str], ...] = ()  # (word, field) in that name

    @property
    def path(self) -> str:
        parts = ["$"]
        for step in self.steps:
            if isinstance(step, int):
                parts.append(f"[{step}]")
            else:
                parts.append(f".{step}" if _PLAIN_KEY.fullmatch(step) else f"[{excerpt(step)}]")
        return "".join(parts)

    @property
    def place(self) -> str:
        """JSON path and, where it is readable, the record's name."""
        raw = self.record if isinstance(self.record, dict) else {}
        name = " ".join(
            f"{word} {excerpt(raw[key])}"
            for word, key in self.name_parts
            if isinstance(raw.get(key), str)
        )
        return f"{self.path} ({name})" if name else self.path

    def below(self, step: str | int) -> Spot:
        return Spot(self.reading, self.order, (*self.steps, step), self.record, self.name_parts)

    def refuse(self, code: str, found: str, remedy: str) -> None:
        if not self.reading.full:
            problem = Problem(code, self.reading.file, self.place, found, remedy)
            self.reading.problems.append((self.order, problem))

    def wrong_type(self, value: object, allowed: str) -> None:
        self.refuse("wrong_type", excerpt(value), f"{allowed} is needed")


Check = Callable[[object, Spot], Any]


def check_value(value: object, spot: Spot, check: Check) -> Any:
    """`check(value, spot)`, unless the JSON text itself was already at fault here."""
    if isinstance(value, Faulty):
        spot.refuse(value.code, value.found, value.remedy)
        return None
    return check(value, spot)


def check_record(value: object, spot: Spot, checks: Mapping[str, Check]) -> dict[str, Any]:
    """The sound fields of an object that must have exactly the fields named in `checks`."""
    if not isinstance(value, dict):
        spot.wrong_type(value, f"an object with the fields {', '.join(checks)}")
        return {}
    if missing := [name for name in checks if name not in value]:
        remedy = f"all of these are needed: {', '.join(checks)}"
        spot.refuse("missing_field", f"no {', '.join(missing)}", remedy)
    for name in value:
        if name not in checks and not spot.reading.full:
            near = get_close_matches(name[:60].lower(), checks, n=2)
            hint = f"did you mean {' or '.join(near)}? " if near else ""
            remedy = f"{hint}allowed here: {', '.join(checks)}"
            spot.below(name).refuse("unknown_field", f"the field {excerpt(name)}", remedy)
    sound = {
        name: check_value(value[name], spot.below(name), check)
        for name, check in checks.items()
        if name in value
    }
    return {name: entry for name, entry in sound.items() if entry is not None}


def check_list(value: object, spot: Spot) -> list[object] | None:
    if isinstance(value, list):
        return value
    spot.wrong_type(value, "a list")
    return None


def check_boolean(value: object, spot: Spot) -> bool | None:
    if isinstance(value, bool):
        return value
    spot.wrong_type(value, "true or false")
    return None


def check_dimension(value: object, spot: Spot) -> int | None:
    if type(value) is not int:
        spot.wrong_type(value, f"an integer from 1 to {MAX_DIMENSION}")
        return None
    if not 1 <= value <= MAX_DIMENSION:
        remedy = f"a dimension is an integer from 1 to {MAX_DIMENSION}"
        spot.refuse("dimension_out_of_range", excerpt(value), remedy)
        return None
    return value


def choice_of(code: str, allowed: tuple[str, ...]) -> Check:
    """A check for one of a few words."""

    def check(value: object, spot: Spot) -> str | None:
        words = " or ".join(f'"{word}"' for word in allowed)
        if not isinstance(value, str):
            spot.wrong_type(value, words)
            return None
        if value not in allowed:
            spot.refuse(code, excerpt(value), f"write {words}")
            return None
        return value

    return check


def check_text(value: object, spot: Spot) -> str | None:
    """Text in its canonical form (see rag_assets.canonical.text)."""
    if not isinstance(value, str):
        spot.wrong_type(value, "a string")
        return None
    if not _is_unicode(value, spot):
        return None
    text = normalize_text(value)
    if _is_blank(text):
        spot.refuse("blank_text", excerpt(value), "a text has visible characters")
        return None
    if control := CONTROL_IN_TEXT.search(text):
        remedy = "tab and line ends are the only control characters allowed in a text"
        spot.refuse("control_character", _name(control.group()), remedy)
        return None
    return text


def token_of(namespace: str, blank_code: str = "blank_identifier") -> Check:
    """A check for an identifier. Identifiers of one namespace are compared for look-alikes."""

    def check(value: object, spot: Spot) -> str | None:
        if not isinstance(value, str):
            spot.wrong_type(value, "a string")
            return None
        known = spot.reading.spellings.get((namespace, value))
        if known is not None and known[0] == value:
            return value
        if not _is_unicode(value, spot):
            return None
        if _is_blank(value):
            spot.refuse(blank_code, excerpt(value), "visible characters are needed")
            return None
        if value != value.strip():
            remedy = "remove the white space at its ends"
            spot.refuse("outer_whitespace", excerpt(value), remedy)
            return None
        if control := _CONTROL_IN_TOKEN.search(value):
            remedy = "control characters and line separators are not allowed in an identifier"
            spot.refuse("control_character", _name(control.group()), remedy)
            return None
        return None if _is_look_alike(value, namespace, spot) else value

    return check


def tokens_of(check: Check, duplicate_code: str, empty_code: str | None) -> Check:
    """A check for a list of distinct identifiers; empty only if `empty_code` is None."""

    def check_all(value: object, spot: Spot) -> list[str] | None:
        if not isinstance(value, list):
            spot.wrong_type(value, "a list of strings")
            return None
        if not value and empty_code:
            spot.refuse(empty_code, "an empty list", "name at least one")
            return None
        first: dict[str, int] = {}
        for index, entry in enumerate(value):
            if spot.reading.full:
                return None
            token = check_value(entry, spot.below(index), check)
            if token in first:
                found = f"{excerpt(token)}, as at [{first[token]}]"
                spot.below(index).refuse(duplicate_code, found, "name each one once")
            elif token is not None:
                first[token] = index
        # An unsound entry could have been any name: nothing may be concluded from the rest.
        return list(first) if len(first) == len(value) else None

    return check_all


def relevance_of(check_id: Check) -> Check:
    """A check for judgements, item id to grade. An unsound grade is kept as None."""

    def check(value: object, spot: Spot) -> dict[str, int | None] | None:
        if not isinstance(value, dict):
            spot.wrong_type(value, "an object of item ids with their grades")
            return None
        if not value:
            spot.refuse("empty_relevance", "no judgement", "judge at least one document")
            return None
        sound: dict[str, int | None] = {}
        for item_id, grade in value.items():
            at = spot.below(item_id)
            name = check_id(item_id, at)
            grade = check_value(grade, at, _check_grade)
            if name is not None:
                sound[name] = grade
        return sound

    return check


def check_components(value: object, spot: Spot) -> list[int | float] | None:
    """A list of JSON numbers. Faults of one kind in one vector are one problem."""
    if not isinstance(value, list):
        spot.wrong_type(value, "a list of numbers")
        return None
    if set(map(type, value)) <= {int, float}:  # type, not isinstance: a bool is an int
        return value
    faults: dict[str, list[int]] = {}
    for index, entry in enumerate(value):
        if type(entry) not in (int, float):
            code = entry.code if isinstance(entry, Faulty) else "wrong_type"
            faults.setdefault(code, []).append(index)
    for code, at in faults.items():
        entry = value[at[0]]
        remedy = entry.remedy if isinstance(entry, Faulty) else "a number is needed"
        spot.below(at[0]).refuse(code, excerpt(entry) + _and_more(len(at)), remedy)
    return None


def check_vector(
    components: list[int | float], spot: Spot, contract: Mapping[str, Any]
) -> np.ndarray | None:
    """`dtype[dimension]`, as the contract stores it, or None.

    Components are rounded to the contract's dtype first, and it is the rounded ones that must be
    finite (1e39 overflows float32), not all zero (1e-60 underflows in float32) and, where the
    contract says `normalized`, of norm 1 within 1e-6; that norm is taken in float64. A norm that
    search could not multiply is refused (only float64 holds such).
    `contract` holds the sound fields of a contract; what it lacks is not checked.
    """
    dimension, dtype = contract.get("dimension"), contract.get("dtype")
    if dimension is not None and len(components) != dimension:
        found = f"{len(components)} components"
        spot.refuse("wrong_dimension", found, f"the contract's dimension is {dimension}")
        return None
    if dtype is None or not components:
        return None
    with np.errstate(over="ignore"):
        vector: np.ndarray = np.array(components, dtype=np.float64).astype(dtype)
    if (beyond := np.flatnonzero(~np.isfinite(vector))).size:
        at = int(beyond[0])
        found = excerpt(components[at]) + _and_more(beyond.size)
        remedy = f"numbers in {dtype} are at most {np.finfo(dtype).max:.6g} in size"
        spot.below(at).refuse("number_out_of_range", found, remedy)
        return None
    if not vector.any():
        remedy = f"at least one component must differ from 0 once it is rounded to {dtype}"
        spot.refuse("zero_vector", f"only zeros in {dtype}", remedy)
        return None
    norm = math.hypot(*vector.tolist())
    if contract.get("normalized") is True and abs(norm - 1) > NORM_TOLERANCE:
        remedy = (
            f"the contract says normalized: the norm, taken in float64 over the components "
            f"rounded to {dtype}, must be 1 within {NORM_TOLERANCE:g}"
        )
        spot.refuse("not_normalized", f"norm {norm:.9g}", remedy)
        return None
    if not SMALLEST_NORM <= norm <= LARGEST_NORM:
        remedy = (
            f"search needs norms from {SMALLEST_NORM:.0e} to {LARGEST_NORM:.0e}: squares and "
            "products must stay in range"
        )
        spot.refuse("norm_out_of_range", f"norm {norm:.3g}", remedy)
        return None
    return vector


def _check_grade(value: object, spot: Spot) -> int | None:
    if type(value) is not int or not MIN_GRADE <= value <= MAX_GRADE:
        remedy = f"a grade is an integer from {MIN_GRADE} to {MAX_GRADE}"
        spot.refuse("bad_grade", excerpt(value), remedy)
        return None
    return value


def _is_unicode(value: str, spot: Spot) -> bool:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        remedy = "half of a surrogate pair is no character: write both halves or the character"
        spot.refuse("lone_surrogate", f"the escape \\u{ord(value[error.start]):04x}", remedy)
        return False
    return True


def _is_blank(value: str) -> bool:
    if value.isprintable():
        return not value.strip(" ")
    return all(unicodedata.category(character) in _INVISIBLE for character in value)


def _is_look_alike(value: str, namespace: str, spot: Spot) -> bool:
    """Whether another spelling of `value` (equal under NFC) came first; reported once for each."""
    key = (namespace, unicodedata.normalize("NFC", value))
    first, at = spot.reading.spellings.setdefault(key, (value, spot))
    if first == value:
        return False
    if (namespace, value) not in spot.reading.look_alikes:
        spot.reading.look_alikes.add((namespace, value))
        found = f"{json.dumps(value)[:80]}, which looks like {json.dumps(first)[:80]} at {at.path}"
        remedy = f"spell one {namespace} in one way (Unicode NFC)"
        spot.refuse("ambiguous_id", found, remedy)
    return True


def _name(character: str) -> str:
    return f"the character U+{ord(character):04X}"


def _and_more(count: int) -> str:
    return f" (and {count - 1} more like it in this vector)" if count > 1 else ""
