"""What a space embeds: the texts of its items, exactly as they are sent to a provider."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.canonical.corpus import Corpus
from rag_assets.errors import InputError, Problem

SHOWN_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class SpaceInputs:
    """`items` follows SPACE_ITEMS, documents first; `texts[n_items]` are prompt and text."""

    items: pa.Table
    texts: list[str]
    document_count: int

    @property
    def documents(self) -> list[str]:
        return self.texts[: self.document_count]


def space_inputs(corpus: Corpus, contract: SpaceContract) -> SpaceInputs:
    """The inputs of the corpus's space of that id, with the prompts of `contract`.

    InputError if an item has no text, or the space holds another version of it than the corpus.
    """
    items = corpus.items_of(contract.space_id)
    numbers = corpus.items["item_no"].to_numpy()
    rows = np.searchsorted(numbers, items["item_no"].to_numpy())
    canonical = corpus.items.take(pa.array(rows))
    same = pc.equal(canonical["content_sha256"], items["content_sha256"])
    usable = pc.and_(pc.fill_null(same, False), pc.is_valid(canonical["text"]))
    faults = np.flatnonzero(~usable.to_numpy(zero_copy_only=False))
    if faults.size:
        problems = [
            Problem(
                "no_text",
                f"space {contract.space_id}",
                f"item {items['item_id'][int(row)].as_py()}",
                "no text of the version that the space declares",
                "the source must hold the text that is to be embedded",
            )
            for row in faults[:SHOWN_PROBLEMS]
        ]
        raise InputError(problems, truncated=faults.size > SHOWN_PROBLEMS)
    roles = items["role"].to_pylist()
    prompts = {
        contract.query_role: contract.query_prompt or "",
        contract.document_role: contract.document_prompt or "",
    }
    texts = [
        prompts[role] + text
        for role, text in zip(roles, canonical["text"].to_pylist(), strict=True)
    ]
    return SpaceInputs(items, texts, sum(role == contract.document_role for role in roles))
