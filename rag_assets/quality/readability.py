"""Who may read what, derived a second time for the leak check.

A subject may read an item if the item's access list shares a group with the subject's groups,
both on the canonical item and on the space's own row. The search has its own implementation of
that rule, which this one shares no code with, so that a fault in either shows as a difference.
Null lists, and lists with a null entry, are readable by nobody.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True)
class SetColumn:
    """A column of sets: `codes: int64[n]` into the distinct `sets`."""

    codes: np.ndarray
    sets: tuple[frozenset[str], ...]

    def at(self, rows: np.ndarray) -> SetColumn:
        """The column at `rows: int64[m]`; the empty set where a row is -1."""
        codes = np.append(self.codes, len(self.sets))[rows]
        return SetColumn(codes, (*self.sets, NOBODY))

    def joint(self, groups: frozenset[str]) -> np.ndarray:
        """bool[n_sets]: which of the distinct sets share a member with `groups`."""
        return np.array([not members.isdisjoint(groups) for members in self.sets], dtype=bool)


def set_column(lists: pa.ChunkedArray) -> SetColumn:
    """Encode an Arrow column of string lists, without a Python object per row."""
    joined = lists.combine_chunks()
    tokens = pc.dictionary_encode(joined.flatten())
    lengths = pc.fill_null(pc.list_value_length(joined), 0).to_numpy()
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    numbered = pa.ListArray.from_arrays(offsets, tokens.indices.cast(pa.string()))
    keys = pc.dictionary_encode(pc.fill_null(pc.binary_join(numbered, ","), ""))
    names = tokens.dictionary.to_pylist()
    sets = tuple(
        frozenset(names[int(number)] for number in key.split(",")) if key else NOBODY
        for key in keys.dictionary.to_pylist()
    )
    return SetColumn(keys.indices.to_numpy().astype(np.int64), sets)


def hidden_pairs(subjects: SetColumn, items: SetColumn) -> np.ndarray:
    """bool[n]: rows where the subject's groups and the item's access list are disjoint.

    Each distinct combination is decided once.
    """
    combined = subjects.codes * len(items.sets) + items.codes
    codes, distinct = pd.factorize(combined)
    hidden = np.array(
        [
            subjects.sets[pair // len(items.sets)].isdisjoint(items.sets[pair % len(items.sets)])
            for pair in distinct.tolist()
        ],
        dtype=bool,
    )
    return hidden[codes]


def readable_counts(subjects: SetColumn, canonical: SetColumn, own: SetColumn) -> np.ndarray:
    """int64[n_subjects]: how many items each subject may read, by both lists of every item."""
    combined = canonical.codes * len(own.sets) + own.codes
    pairs, counts = np.unique(combined, return_counts=True)
    per_set = np.zeros(len(subjects.sets), dtype=np.int64)
    for number, groups in enumerate(subjects.sets):
        both = canonical.joint(groups)[pairs // len(own.sets)]
        both &= own.joint(groups)[pairs % len(own.sets)]
        per_set[number] = counts[both].sum()
    counted: np.ndarray = per_set[subjects.codes]
    return counted
