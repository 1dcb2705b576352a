"""A signature stands for what makes vectors comparable, and for nothing else."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest

from rag_assets.canonical.contracts import (
    CONTRACT_FIELDS,
    UNSIGNED,
    SpaceContract,
    canonical_json,
)

CONTRACT = SpaceContract(
    space_id="toy-v1",
    provider="hand-authored",
    model="modèle",
    revision="v1",
    dimension=4,
    metric="cosine",
    normalized=False,
    query_role="query",
    document_role="document",
    dtype="float32",
)
CHANGES: dict[str, Any] = {
    "provider": "other",
    "model": "other",
    "revision": "v2",
    "dimension": 5,
    "metric": "dot",
    "normalized": True,
    "query_role": "question",
    "document_role": "passage",
    "dtype": "float64",
    "query_prompt": "query: ",
    "document_prompt": "passage: ",
    "pooling": "mean",
    "truncation": "end",
    "max_input_tokens": 256,
    "derivation": "truncate 2",
    "derived_from": "0" * 64,
}


def test_signature_is_sha256_over_sorted_compact_json_without_the_alias() -> None:
    # Written out by hand: keys in alphabetical order, no spaces, "è" as the bytes c3 a8.
    body = (
        b'{"dimension":4,"document_role":"document","dtype":"float32","metric":"cosine",'
        b'"model":"mod\xc3\xa8le","normalized":false,"provider":"hand-authored",'
        b'"query_role":"query","revision":"v1"}'
    )
    assert CONTRACT.signature == hashlib.sha256(body).hexdigest()


def test_two_aliases_of_one_space_share_a_signature() -> None:
    assert replace(CONTRACT, space_id="another-alias").signature == CONTRACT.signature


@pytest.mark.parametrize("name", sorted(set(CONTRACT_FIELDS) - UNSIGNED))
def test_any_other_field_changes_the_signature(name: str) -> None:
    changed = replace(CONTRACT, **{name: CHANGES[name]})
    assert changed.signature != CONTRACT.signature


@pytest.mark.parametrize("name", ["licence", "looked_up_at", "looked_up_on"])
def test_where_a_contract_was_looked_up_does_not_change_the_signature(name: str) -> None:
    assert replace(CONTRACT, **{name: "something"}).signature == CONTRACT.signature


def test_canonical_json_has_no_nan() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"x": float("nan")})
