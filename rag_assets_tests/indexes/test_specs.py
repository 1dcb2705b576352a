"""Descriptions of approximate indexes: what is refused before any work, and how they are varied."""

from __future__ import annotations

import json

import pytest

from rag_assets.errors import UsageError
from rag_assets.indexes.specs import (
    KINDS,
    FilterPolicy,
    Hnsw,
    IndexSpec,
    IvfFlat,
    IvfPq,
    IvfRabitq,
    Refine,
    faults,
    parameters,
    spec_from,
    varied,
)

PUBLISHED = IvfPq(n_clusters=64, nprobe=8, n_iters=8, n_subvectors=8, n_bits=4)


def test_the_published_configuration_has_no_fault() -> None:
    assert faults(PUBLISHED, dimension=64, count=5000) == []


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        (IvfPq(8, 1, n_subvectors=7), "n_subvectors is 7; it must divide the dimension 64"),
        (IvfPq(8, 1, n_bits=0), "n_bits is 0; it must be at least 1"),
        (IvfPq(8, 1, n_bits=9), "n_bits is 9; it must be from 1 to 8"),
        # 2^8 = 256 codebook entries, 200 vectors
        (IvfPq(8, 1, n_bits=8), "n_bits is 8, which needs 256 vectors to train on; there are 200"),
        (IvfFlat(201, 1), "n_clusters is 201, more than the 200 vectors"),
        (IvfFlat(8, 9), "nprobe is 9, more than n_clusters (8)"),
        (IvfFlat(0, 0), "n_clusters is 0; it must be at least 1"),
        (IvfFlat(8, 0), "nprobe is 0; it must be at least 1"),
        (IvfFlat(8, 1, n_iters=0), "n_iters is 0; it must be at least 1"),
        (IvfFlat(8, 1, seed=-1), "seed is -1; it must be at least 0"),
        (IvfFlat(8, 1, seed=2**31), "seed is 2147483648; it must be at most 2147483647"),
        (IvfFlat(8, True), "nprobe is True; it must be an integer"),
        (IvfFlat(8.0, 1), "n_clusters is 8.0; it must be an integer"),  # type: ignore[arg-type]
        (IvfRabitq(8, 1, refine=Refine(0)), "refine.factor is 0; it must be at least 1"),
        (
            IvfRabitq(8, 1, refine=Refine(vectors="sq4")),  # type: ignore[arg-type]
            "refine.vectors is 'sq4'; it must be exact or sq8",
        ),
        (
            IvfFlat(8, 1, policy=FilterPolicy(exact_below=-1)),
            "policy.exact_below is -1; it must be at least 0",
        ),
        (
            Hnsw(policy=FilterPolicy(least_candidates=0)),
            "policy.least_candidates is 0; it must be at least 1",
        ),
        (
            IvfPq(8, 1, n_subvectors=2, n_bits=1, opq=True),
            "opq needs at least 202 vectors to learn a rotation from; there are 200",
        ),
        (Hnsw(m=1), "m is 1; it must be at least 2"),
        (Hnsw(ef_search=0), "ef_search is 0; it must be at least 1"),
    ],
)
def test_a_fault_names_the_value_and_what_is_allowed(spec: IndexSpec, fault: str) -> None:
    dimension = 202 if "opq" in fault else 64
    assert fault in faults(spec, dimension, count=200)


def test_every_fault_is_listed_at_once() -> None:
    spec = IvfPq(n_clusters=300, nprobe=400, n_subvectors=7, n_bits=8)
    assert len(faults(spec, dimension=64, count=200)) == 4


@pytest.mark.parametrize("spec", [IvfFlat(1, 1), Hnsw()])
def test_nothing_can_be_indexed_where_there_is_nothing(spec: IndexSpec) -> None:
    assert "there are no vectors" in faults(spec, dimension=64, count=0)


@pytest.mark.parametrize(
    "spec",
    [
        PUBLISHED,
        IvfPq(8, 2, opq=True, refine=Refine(6, "exact"), policy=FilterPolicy(5, 7)),
        IvfFlat(8, 2, policy=FilterPolicy()),
        IvfRabitq(8, 2, refine=Refine()),
        Hnsw(m=8, policy=FilterPolicy(0, 1)),
    ],
)
def test_parameters_describe_a_spec_completely(spec: IndexSpec) -> None:
    described = json.loads(json.dumps(parameters(spec)))
    assert spec_from(described.pop("kind"), described) == spec


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        ("ivf_pq", {"n_clusters": 8, "nprobe": 1, "n_bits": 9}, "ivf_pq: n_bits is 9; it must be"),
        ("ivf_flat", {"n_clusters": 8, "nprobe": 9}, "ivf_flat: nprobe is 9, more than n_clusters"),
        ("ivf_flat", {"n_clusters": 0, "nprobe": 1}, "n_clusters is 0; it must be at least 1"),
        ("hnsw", {"m": 1}, "m is 1; it must be at least 2"),
    ],
)
def test_what_no_vectors_could_mend_is_refused_when_the_suite_is_read(
    kind: str, given: dict[str, int], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        spec_from(kind, given)


def test_every_kind_has_a_name() -> None:
    assert set(KINDS) == {"ivf_pq", "ivf_flat", "ivf_rabitq", "hnsw"}


def test_one_parameter_is_varied_and_an_unknown_one_refused() -> None:
    assert varied(PUBLISHED, "nprobe", 16) == IvfPq(64, 16, 8, n_subvectors=8, n_bits=4)
    with pytest.raises(UsageError, match=r"an hnsw index has no parameter 'nprobe'; it has m, ef_"):
        varied(Hnsw(), "nprobe", 16)
