"""Vectors from a local model, through sentence-transformers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.embeddings.providers import Limits, RefusedBatch, SentenceTransformersConfig
from rag_assets.errors import ProviderMissing, UsageError

TRUNCATIONS = {"end": "right", "start": "left"}


@dataclass(frozen=True)
class SentenceTransformersProvider:
    """See Provider; the model is loaded at the first batch, and checked against the contract."""

    config: SentenceTransformersConfig
    contract: SpaceContract

    @property
    def limits(self) -> Limits:
        return Limits(max_items=self.config.batch_items, max_bytes=4_000_000)

    def embed(self, texts: Sequence[str], role: str) -> np.ndarray:
        """float32[n_texts, d]; of unit length if the contract says normalized."""
        model = self._model
        is_query = role == self.contract.query_role
        prompt = (self.contract.query_prompt if is_query else self.contract.document_prompt) or ""
        failed = None
        try:
            # The prompt goes in by name: some models leave it out of their pooling. An empty one
            # keeps out the default prompt of the model's own files.
            vectors: np.ndarray = model.encode(
                [text.removeprefix(prompt) for text in texts],
                prompt=prompt,
                batch_size=min(32, self.config.batch_items),
                normalize_embeddings=self.contract.normalized,
                convert_to_numpy=True,
                show_progress_bar=False,
            )
        except Exception as error:  # whatever a model raises may quote the text, so only its name
            failed = type(error).__name__
        if failed is not None:
            raise RefusedBatch(f"the model failed with {failed}")
        return vectors

    @cached_property
    def _model(self) -> Any:
        space = f"space {self.contract.space_id!r}"
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise ProviderMissing(
                f"{space}: the package sentence-transformers is not installed; "
                "install rag-assets[sentence-transformers]"
            ) from None
        name, is_folder = self._place()
        try:
            model = SentenceTransformer(
                name,
                device=self.config.device,
                revision=None if is_folder else self.contract.revision,
                local_files_only=self.config.local_files_only or is_folder,
                # Else the weights' own type decides, half precision for some.
                model_kwargs={"dtype": "float32"},
            )
        except Exception as error:  # no network, no such model or revision, damaged files
            reason = type(error).__name__
            raise ProviderMissing(
                f"{space}: the model {self._shown!r} at revision {self.contract.revision!r} "
                f"cannot be loaded ({reason}); it needs a network or a local copy"
            ) from error
        _apply_contract(model, self.contract)
        return model

    @property
    def _shown(self) -> str:
        """The model as the settings name it."""
        return self.config.model or self.contract.model

    def _place(self) -> tuple[str, bool]:
        """What to load, and whether it is a folder."""
        if self.config.package is not None:
            try:
                folder = Path(str(resources.files(self.config.package))) / (self.config.model or "")
            except (ImportError, TypeError):
                folder = None
            if folder is None or not folder.is_dir():
                raise ProviderMissing(
                    f"space {self.contract.space_id!r}: the package {self.config.package!r} with "
                    f"the folder {self.config.model or '.'!r} is not installed"
                )
            return str(folder), True
        return self._shown, Path(self._shown).is_dir()


def _apply_contract(model: Any, contract: SpaceContract) -> None:
    """Set what a contract can set on a model; UsageError for what the model is not."""
    space = f"space {contract.space_id!r}"
    if contract.max_input_tokens is not None:
        model.max_seq_length = contract.max_input_tokens
    if contract.truncation is not None:
        if contract.truncation not in TRUNCATIONS:
            raise UsageError(
                f"{space}: truncation is {contract.truncation!r}; "
                f"sentence_transformers can do {', '.join(TRUNCATIONS)}"
            )
        model.tokenizer.truncation_side = TRUNCATIONS[contract.truncation]
    pooling = next(
        (module.pooling_mode for module in model if hasattr(module, "pooling_mode")), None
    )
    for what, stated, found in (
        ("dimension", contract.dimension, model.get_embedding_dimension()),
        ("pooling", contract.pooling, pooling),
    ):
        if None not in (stated, found) and stated != found:
            raise UsageError(f"{space}: {what} is {stated!r}, but the model has {found!r}")
