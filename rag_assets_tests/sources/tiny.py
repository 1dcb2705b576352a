"""A small valid fixture to break: two spaces, three documents, one query item, two cases."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from rag_assets.canonical.corpus import Corpus
from rag_assets.errors import InputError, Problem
from rag_assets.sources.fixture import parse_fixture

Tree = dict[str, Any]
Mutation = Callable[[Tree], None]

# One name in two spellings, composed and decomposed.
NFC, NFD = "caf\u00e9", "cafe\u0301"


def contract_of(space_id: str, **fields: Any) -> Tree:
    contract = {
        "space_id": space_id,
        "provider": "hand-authored",
        "model": "tiny",
        "revision": space_id,
        "dimension": 2,
        "metric": "cosine",
        "normalized": False,
        "query_role": "query",
        "document_role": "document",
        "dtype": "float32",
    }
    return contract | fields


def item_of(item_id: str, space_id: str, vector: list[Any], **fields: Any) -> Tree:
    item = {
        "item_id": item_id,
        "space_id": space_id,
        "role": "query" if item_id.startswith("q") else "document",
        "text": f"text of {item_id}",
        "vector": vector,
        "acl": ["staff"],
        "source_revision": "r1",
    }
    return item | fields


VALID: Tree = {
    "contracts": [
        contract_of("a"),
        contract_of("b", metric="dot", normalized=True, dtype="float64", query_role="ask"),
    ],
    "items": [
        item_of("q1", "a", [1, 0]),  # $.items[0]
        item_of("d2", "a", [3, 4.5]),
        item_of("d1", "a", [-1, 2], acl=["staff", "guests"]),
        item_of("d1", "b", [0.6, 0.8], acl=["staff"], text="another text of d1"),
        item_of("d2", "b", [0, 1]),
        item_of("q1", "b", [1, 0], role="ask"),  # $.items[5]
        item_of("d0", "b", [-1, 0]),
    ],
    "queries": [
        {
            "case_id": "c1",
            "query_item_id": "q1",
            "subject_groups": ["staff", "board"],
            "relevance": {"d1": 3, "d2": 1},
            "subgroups": ["short", "english"],
        },
        {
            "case_id": "c2",
            "query_item_id": "q1",
            "subject_groups": ["staff"],
            "relevance": {"d2": 2},
            "subgroups": [],
        },
    ],
}


def put(*path: Any) -> Mutation:
    """put("items", 0, "role", "x") sets items[0].role to "x"."""
    *steps, last, value = path

    def mutate(tree: Any) -> None:
        for step in steps:
            tree = tree[step]
        if isinstance(tree, list) and last == len(tree):
            tree.append(value)
        else:
            tree[last] = value

    return mutate


def drop(*path: Any) -> Mutation:
    *steps, last = path

    def mutate(tree: Any) -> None:
        for step in steps:
            tree = tree[step]
        del tree[last]

    return mutate


def mutated(*mutations: Mutation) -> Tree:
    tree = copy.deepcopy(VALID)
    for mutate in mutations:
        mutate(tree)
    return tree


def parse(tree: object) -> Corpus:
    return parse_fixture(json.dumps(tree).encode("ascii"), "f.json")


def problems_of(data: bytes, **options: int) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as caught:
        parse_fixture(data, "f.json", **options)
    for line, problem in zip(caught.value.lines(), caught.value.problems, strict=False):
        assert line.isprintable(), line  # one line each, nothing a terminal would act on
        assert problem.file == "f.json"
        assert problem.remedy
    return caught.value.problems


def problems(tree: object) -> tuple[Problem, ...]:
    return problems_of(json.dumps(tree).encode("ascii"))
