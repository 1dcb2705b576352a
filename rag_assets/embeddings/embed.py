"""Embed a space: every input once, in bounded batches, through a cache.

A batch that fails is tried again, split, and in the end named item by item; what succeeded is
stored at once, and nothing is stored that was not checked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.canonical.corpus import Corpus
from rag_assets.embeddings.cache import EmbeddingCache, Side, input_key
from rag_assets.embeddings.inputs import SHOWN_PROBLEMS, SpaceInputs, space_inputs
from rag_assets.embeddings.providers import (
    BadResponse,
    Limits,
    Provider,
    RefusedBatch,
    TransientFailure,
)
from rag_assets.embeddings.space import EmbeddedSpace
from rag_assets.errors import InputError, Problem, ProviderMissing

# A provider may promise unit length and answer in half precision; beyond this it broke the promise.
UNIT_TOLERANCE = 1e-3

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently a failed batch is tried again; waits are seconds.

    Before attempt n + 1 it waits `first_wait * 2^(n - 1)`, or as long as the service asked for if
    that is longer. A service that asks for more than `longest_wait` counts as missing.
    """

    attempts: int = 6
    first_wait: float = 1.0
    longest_wait: float = 120.0

    def wait(self, failures: int, asked: float | None) -> float:
        backoff: float = min(self.first_wait * 2 ** (failures - 1), self.longest_wait)
        return max(backoff, asked or 0.0)


@dataclass(frozen=True, slots=True)
class EmbeddingReport:
    """`items` rows need `inputs` distinct texts; of these `cache_hits` were stored before and
    `embedded` were made now, in `requests` calls of which `retries` repeated a failed one."""

    items: int
    inputs: int
    cache_hits: int
    embedded: int
    requests: int
    retries: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Input:
    """One distinct text of one role and the rows of the space that need its vector."""

    key: str
    text: str
    rows: list[int]


@dataclass(slots=True)
class _Run:
    """What one call of `embed_space` works with and counts."""

    contract: SpaceContract
    provider: Provider
    retry: RetryPolicy
    sleep: Callable[[float], None]
    requests: int = 0
    retries: int = 0
    refused: list[tuple[_Input, str]] = field(default_factory=list)


def embed_space(
    corpus: Corpus,
    contract: SpaceContract,
    provider: Provider,
    cache: EmbeddingCache,
    *,
    progress: Progress | None = None,
    retry: RetryPolicy | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[EmbeddedSpace, EmbeddingReport]:
    """The corpus's items of `contract.space_id`, embedded, and how it went.

    `progress(done, total)` counts distinct inputs. Raises ProviderMissing if vectors cannot be made
    here or the service stays unreachable, and InputError naming the items that it refuses, or a
    dimension or norm that the contract does not state. All vectors made before stay cached.
    """
    inputs = space_inputs(corpus, contract)
    vectors = np.empty((len(inputs.texts), contract.dimension), contract.numpy_dtype)
    run = _Run(contract, provider, retry or RetryPolicy(), sleep)
    notes: list[str] = []
    sides: tuple[tuple[Side, str, range], ...] = (
        ("documents", contract.document_role, range(inputs.document_count)),
        ("queries", contract.query_role, range(inputs.document_count, len(inputs.texts))),
    )
    wanted = {side: _distinct(inputs, rows) for side, _, rows in sides}
    total = sum(map(len, wanted.values()))
    for side in wanted:
        for keys, stored in cache.batches(contract, side, notes):
            for key, vector in zip(keys, stored, strict=True):
                if found := wanted[side].pop(key, None):
                    vectors[found.rows] = vector
    hits = total - sum(map(len, wanted.values()))
    done = hits
    for side, role, _ in sides:
        for batch in _batches(list(wanted[side].values()), provider.limits):
            for settled, made in _settle(run, batch, role):
                cache.store(contract, side, [entry.key for entry in settled], made)
                for entry, vector in zip(settled, made, strict=True):
                    vectors[entry.rows] = vector
                done += len(settled)
                if progress is not None:
                    progress(done, total)
            if len(run.refused) > SHOWN_PROBLEMS:
                raise _refusal(run, inputs)
    if run.refused:
        raise _refusal(run, inputs)
    report = EmbeddingReport(
        len(vectors), total, hits, done - hits, run.requests, run.retries, tuple(notes)
    )
    return EmbeddedSpace(contract, inputs.items, vectors), report


def _distinct(inputs: SpaceInputs, rows: range) -> dict[str, _Input]:
    distinct: dict[str, _Input] = {}
    for row in rows:
        text = inputs.texts[row]
        key = input_key(text)
        distinct.setdefault(key, _Input(key, text, [])).rows.append(row)
    return distinct


def _batches(inputs: list[_Input], limits: Limits) -> Iterator[list[_Input]]:
    """Inputs in order, in batches within the limits; a text above them stands alone."""
    batch: list[_Input] = []
    held = 0
    for entry in inputs:
        size = len(entry.text.encode("utf-8"))
        if batch and (len(batch) == limits.max_items or held + size > limits.max_bytes):
            yield batch
            batch, held = [], 0
        batch.append(entry)
        held += size
    if batch:
        yield batch


def _settle(run: _Run, batch: list[_Input], role: str) -> Iterator[tuple[list[_Input], np.ndarray]]:
    """The vectors of a batch, in parts where it had to be split; refused inputs go to `run`."""
    refusal = None
    try:
        vectors = _attempts(run, batch, role)
    except RefusedBatch as failure:
        refusal = failure.reason
    if refusal is None:
        yield batch, vectors
    elif len(batch) == 1:
        run.refused.append((batch[0], refusal))
    else:
        middle = len(batch) // 2
        for half in (batch[:middle], batch[middle:]):
            if len(run.refused) <= SHOWN_PROBLEMS:
                yield from _settle(run, half, role)


def _attempts(run: _Run, batch: list[_Input], role: str) -> np.ndarray:
    """The checked vectors of one batch. RefusedBatch if it is better split, ProviderMissing if the
    service is at fault, InputError if the contract is."""
    texts = [entry.text for entry in batch]
    failures = bad_responses = 0
    while True:
        run.requests += 1
        problem: TransientFailure | BadResponse | InputError
        try:
            return checked_vectors(run.provider.embed(texts, role), len(batch), run.contract)
        except (TransientFailure, BadResponse, InputError) as failure:
            problem = failure
        if isinstance(problem, TransientFailure):
            failures += 1
            _wait_or_give_up(run, problem, failures)
        else:
            bad_responses += 1
            if bad_responses > 1:
                if isinstance(problem, InputError):
                    raise problem
                raise RefusedBatch(problem.reason)
        run.retries += 1


def _wait_or_give_up(run: _Run, problem: TransientFailure, failures: int) -> None:
    wait = run.retry.wait(failures, problem.retry_after)
    space = f"space {run.contract.space_id!r}"
    if failures >= run.retry.attempts:
        if not problem.service_wide:
            raise RefusedBatch(problem.reason)
        raise ProviderMissing(
            f"{space}: {problem.reason}, {failures} times in a row; vectors made so far are kept"
        )
    if wait > run.retry.longest_wait:
        raise ProviderMissing(
            f"{space}: {problem.reason} and asks to wait {wait:.0f} s, more than the "
            f"{run.retry.longest_wait:.0f} s allowed; vectors made so far are kept"
        )
    run.sleep(wait)


def checked_vectors(vectors: np.ndarray, count: int, contract: SpaceContract) -> np.ndarray:
    """`vectors` as contract dtype[count, dimension]: finite, not zero, of unit length if promised.

    A length within UNIT_TOLERANCE of a promised 1 is made exact. BadResponse for a fault of single
    vectors or of their number; InputError where all contradict the contract.
    """
    if vectors.ndim != 2 or len(vectors) != count:
        raise BadResponse(f"vectors of shape {vectors.shape} for {count} texts")
    if vectors.shape[1] != contract.dimension:
        raise _contradiction(
            contract,
            count,
            "wrong_dimension",
            f"dimension {vectors.shape[1]} where the contract says {contract.dimension}",
            "correct the contract's dimension, or the model that serves it",
        )
    with np.errstate(over="ignore", invalid="ignore"):
        stored = np.ascontiguousarray(vectors, dtype=contract.numpy_dtype)
        norms = np.sqrt(np.einsum("ij,ij->i", stored, stored, dtype=np.float64))
    if not np.isfinite(norms).all():
        raise BadResponse("a vector that is not finite")
    if not (norms > 0).all():
        raise BadResponse("a vector of zeros")
    if contract.normalized:
        off = np.abs(norms - 1) > UNIT_TOLERANCE
        if off.all():
            raise _contradiction(
                contract,
                count,
                "not_normalized",
                f"length {norms[0]:.4g} where the contract promises 1",
                "set the contract's normalized to false, or have the provider normalize",
            )
        if off.any():
            raise BadResponse("a vector whose length is not the promised 1")
        stored = (stored / norms[:, np.newaxis]).astype(contract.numpy_dtype)
    return stored


def _contradiction(
    contract: SpaceContract, count: int, code: str, found: str, remedy: str
) -> InputError | BadResponse:
    """Vectors that are all unlike the contract speak against it; a single one may be a fault."""
    if count == 1:
        return BadResponse(f"a vector of {found}")
    place = f"space {contract.space_id}"
    return InputError([Problem(code, place, "vectors", f"vectors of {found}", remedy)])


def _refusal(run: _Run, inputs: SpaceInputs) -> InputError:
    """Every refused item by its id, never by its text."""
    ids = inputs.items["item_id"]
    problems = [
        Problem(
            "not_embedded",
            f"space {run.contract.space_id}",
            f"item {ids[row].as_py()}",
            reason,
            "correct or remove the item; the vectors of the others are kept",
        )
        for entry, reason in run.refused
        for row in entry.rows
    ]
    return InputError(problems[:SHOWN_PROBLEMS], truncated=len(problems) > SHOWN_PROBLEMS)
