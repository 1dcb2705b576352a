"""Vectors from any server with /v1/embeddings, through the official client.

The client's own exceptions carry the request, with key and texts, and what the server said, which
may quote them. They never leave this module, not even as the context of another exception.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cached_property
from http import HTTPStatus
from typing import Any

import numpy as np

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.embeddings.providers import (
    BadResponse,
    BatchFailure,
    Limits,
    OpenAICompatibleConfig,
    RefusedBatch,
    TransientFailure,
)
from rag_assets.errors import ProviderMissing

# Statuses that a wait may cure; other 5xx may come from one text.
_OVERLOADED = {408, 409, 425, 429, 502, 503, 504, 529}
# Statuses that no text can cause: the address, the key or the model's name is wrong.
_UNUSABLE = {401, 402, 403, 404, 405, 407, 410}


@dataclass(frozen=True)
class OpenAICompatibleProvider:
    """See Provider. `clock` gives seconds since the epoch, for a Retry-After that is a date."""

    config: OpenAICompatibleConfig
    contract: SpaceContract
    clock: Callable[[], float] = field(default=time.time, repr=False)

    @property
    def limits(self) -> Limits:
        return Limits(self.config.batch_items, self.config.batch_bytes)

    def embed(self, texts: Sequence[str], role: str) -> np.ndarray:
        """float64[n_texts, d], in the order of `texts` whatever the order of the response."""
        client = self._client
        import openai

        request: dict[str, Any] = {
            "model": self.config.model or self.contract.model,
            "input": list(texts),
            "encoding_format": "float",
        }
        if self.config.send_dimensions:
            request["dimensions"] = self.contract.dimension
        failure: BatchFailure | ProviderMissing
        try:
            body = client.embeddings.with_raw_response.create(**request).content
        except openai.APITimeoutError:
            failure = TransientFailure(
                self._said(f"no answer in {self.config.timeout_seconds:g} s")
            )
        except openai.APIStatusError as error:
            failure = self._status_failure(error, texts)
        except (openai.OpenAIError, UnicodeError):
            failure = TransientFailure(self._said("no connection"))
        else:
            return ordered_vectors(body, len(texts))
        raise failure

    @cached_property
    def _client(self) -> Any:
        key = "none"
        if self.config.api_key_env is not None:
            key = os.environ.get(self.config.api_key_env, "").strip()
            if not re.fullmatch(r"[!-~]+", key):
                raise ProviderMissing(
                    f"space {self.contract.space_id!r}: the environment variable "
                    f"{self.config.api_key_env} holds no key"
                )
        try:
            import openai
        except ImportError:
            raise ProviderMissing(
                f"space {self.contract.space_id!r}: the package openai is not installed; "
                "install rag-assets[openai]"
            ) from None
        return openai.OpenAI(
            api_key=key,
            base_url=self.config.base_url,
            timeout=self.config.timeout_seconds,
            max_retries=0,
            # A redirect would send the texts to a host that nobody named.
            http_client=openai.DefaultHttpxClient(follow_redirects=False),
        )

    def _said(self, what: str) -> str:
        return f"{self.config.base_url}: {what}"

    def _status_failure(self, error: Any, texts: Sequence[str]) -> BatchFailure | ProviderMissing:
        status = error.status_code
        reason = self._said(f"{_status_name(status)}{_server_code(error, texts)}")
        if status in _OVERLOADED:
            after = retry_after_seconds(error.response.headers, self.clock())
            return TransientFailure(reason, retry_after=after)
        if status >= 500:
            return TransientFailure(reason, service_wide=False)
        if status < 400 or status in _UNUSABLE:
            return ProviderMissing(f"space {self.contract.space_id!r}: {reason}")
        return RefusedBatch(reason)


def ordered_vectors(body: bytes, count: int) -> np.ndarray:
    """float64[count, d] from a response's JSON, placed by `index`. BadResponse if any is missing,
    repeated or not a list of numbers, or if their lengths differ."""
    try:
        data = json.loads(body)["data"]
        indices = [entry["index"] for entry in data]
        lists = [entry["embedding"] for entry in data]
    except (ValueError, KeyError, TypeError):
        data = None
    if data is None:
        raise BadResponse("a response that is not a list of embeddings")
    if any(type(index) is not int for index in indices) or sorted(indices) != list(range(count)):
        raise BadResponse(f"{len(indices)} vectors whose numbers are not 0 to {count - 1}")
    try:
        vectors = np.array(lists, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        vectors = np.empty(0)
    if vectors.ndim != 2:
        raise BadResponse("vectors that are not lists of numbers of one length")
    return vectors[np.argsort(indices)]


def retry_after_seconds(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait from Retry-After (seconds or a date) or retry-after-ms; None if not said."""
    milliseconds = headers.get("retry-after-ms")
    seconds = headers.get("retry-after", "").strip()
    try:
        wait = float(milliseconds) / 1000 if milliseconds else float(seconds)
    except ValueError:
        try:
            wait = parsedate_to_datetime(seconds).timestamp() - now
        except (ValueError, TypeError, OverflowError):
            return None
    return max(wait, 0.0) if wait == wait else None


def _status_name(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _server_code(error: Any, texts: Sequence[str]) -> str:
    """The server's code for the error, if it is one plain word that no text holds."""
    code = error.code or error.type
    plain = isinstance(code, str) and re.fullmatch(r"[a-z][a-z_]{2,39}", code)
    return f" ({code})" if plain and not any(code in text for text in texts) else ""
