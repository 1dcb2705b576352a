"""A server with /v1/embeddings, good and bad: nothing is lost, nothing wrong is stored or told."""

from __future__ import annotations

import json
import logging
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path

import numpy as np
import pytest

from rag_assets.embeddings.embed import RetryPolicy
from rag_assets.embeddings.openai_server import (
    OpenAICompatibleProvider,
    ordered_vectors,
    retry_after_seconds,
)
from rag_assets.embeddings.providers import BadResponse, BatchFailure, OpenAICompatibleConfig
from rag_assets.errors import InputError, ProviderMissing, RagAssetsError
from rag_assets_tests.embeddings.corpora import (
    CONTRACT,
    DOCUMENTS,
    QUERIES,
    contract,
    corpus_of,
    embedded,
    expected,
)
from rag_assets_tests.embeddings.fake_server import (
    Behaviour,
    Body,
    FakeServer,
    Reply,
    good,
    serving,
)

pytest.importorskip("openai", reason="the extra openai is not installed")

ALL = [*DOCUMENTS.values(), *QUERIES.values()]
KEY = "sk-kept-to-itself-123"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)


def provider_of(server: FakeServer | str, **settings: object) -> OpenAICompatibleProvider:
    url = server if isinstance(server, str) else server.url
    config = OpenAICompatibleConfig(base_url=url, api_key_env="TEST_KEY", batch_items=4)
    return OpenAICompatibleProvider(replace(config, **settings), CONTRACT)  # type: ignore[arg-type]


def then_good(*replies: Reply) -> Behaviour:
    """These replies first, then right ones."""
    return lambda request, number: replies[number] if number < len(replies) else good(request)


def changed(change: Callable[[list[Body]], object]) -> Behaviour:
    """Right answers whose `data` was changed in place."""

    def behaviour(request: Body, _: int) -> Reply:
        reply = good(request)
        assert isinstance(reply.body, dict)
        change(reply.body["data"])
        return reply

    return behaviour


def test_what_is_sent_and_what_comes_back(tmp_path: Path) -> None:
    with serving() as server:
        space, report = embedded(provider_of(server), tmp_path)
    np.testing.assert_array_equal(space.vectors, expected(ALL))
    assert server.texts == ALL
    assert [len(request["input"]) for request in server.requests] == [4, 4, 2, 2]
    first = server.requests[0]
    assert (first["path"], first["model"]) == ("/v1/embeddings", "m")
    assert (first["encoding_format"], "dimensions" in first) == ("float", False)
    assert {headers["authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
    assert report.requests == 4


def test_the_dimension_and_the_servers_own_model_name_are_sent_if_set(tmp_path: Path) -> None:
    with serving() as server:
        embedded(provider_of(server, model="deployed", send_dimensions=True), tmp_path)
    assert {(r["model"], r["dimensions"]) for r in server.requests} == {("deployed", 4)}


def test_without_a_variable_no_key_of_the_environment_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving() as server:
        embedded(provider_of(server, api_key_env=None), tmp_path)
    assert KEY not in json.dumps(server.headers)


@pytest.mark.parametrize("value", [None, "", "  ", "two words", "schlüssel"])
def test_no_usable_key_names_the_variable_and_sends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv("TEST_KEY")
    if value is not None:
        monkeypatch.setenv("TEST_KEY", value)
    with serving() as server, pytest.raises(ProviderMissing, match="TEST_KEY holds no key"):
        embedded(provider_of(server), tmp_path)
    assert server.requests == []


def test_a_cached_space_needs_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as server:
        embedded(provider_of(server), tmp_path)
    monkeypatch.delenv("TEST_KEY")
    space, _ = embedded(provider_of(server), tmp_path)
    np.testing.assert_array_equal(space.vectors, expected(ALL))


def test_rate_limits_are_waited_out_as_asked(tmp_path: Path) -> None:
    waits: list[float] = []
    limited = [Reply(429, headers={"Retry-After": "7"}), Reply(503), Reply(529)]
    with serving(then_good(*limited)) as server:
        space, report = embedded(provider_of(server), tmp_path, waits=waits)
    np.testing.assert_array_equal(space.vectors, expected(ALL))
    assert waits == [7.0, 2.0, 4.0]
    assert report.retries == 3


def test_retry_after_in_its_three_forms() -> None:
    now = 1_700_000_000.0
    assert retry_after_seconds({"retry-after": "1.5"}, now) == 1.5
    assert retry_after_seconds({"retry-after-ms": "250"}, now) == 0.25
    assert retry_after_seconds({"retry-after": formatdate(now + 90, usegmt=True)}, now) == 90
    assert retry_after_seconds({"retry-after": formatdate(now - 90, usegmt=True)}, now) == 0
    for nonsense in ({}, {"retry-after": "soon"}, {"retry-after": "nan"}):
        assert retry_after_seconds(nonsense, now) is None


def test_the_client_itself_does_not_retry(tmp_path: Path) -> None:
    with serving(lambda *_: Reply(429)) as server, pytest.raises(ProviderMissing, match="429"):
        embedded(provider_of(server), tmp_path, retry=RetryPolicy(attempts=3))
    assert len(server.requests) == 3


def test_reordered_responses_are_put_in_order(tmp_path: Path) -> None:
    with serving(changed(lambda data: data.reverse())) as server:
        space, report = embedded(provider_of(server), tmp_path)
    np.testing.assert_array_equal(space.vectors, expected(ALL))
    assert report.retries == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.pop(),
        lambda data: data.append(dict(data[0], index=len(data))),
        lambda data: data[-1].update(index=len(data) - 2),  # repeated; -1 where there is one
        lambda data: data[0].update(index=len(data)),
        lambda data: data[0].update(index=None),
        lambda data: data[0].update(index=False),
        lambda data: data[0].pop("index"),
        lambda data: data[0].update(embedding=None),
        lambda data: data[0].update(embedding="AAAA"),
        lambda data: data[0].update(embedding=[0.1, "x", 0.1, 0.1]),
        lambda data: data[0].update(embedding=[float("nan"), 0, 0, 0]),
        lambda data: data[0].update(embedding=[1e39, 0, 0, 0]),
        lambda data: data[0].update(embedding=[0, 0, 0, 0]),
        lambda data: [entry["embedding"].pop() for entry in data],
    ],
)
def test_a_wrong_response_is_asked_for_once_more_and_never_stored(
    tmp_path: Path, change: Callable[[list[Body]], object]
) -> None:
    always = tmp_path / "always"
    with serving(changed(change)) as server, pytest.raises(InputError):
        embedded(provider_of(server), always, corpus_of({"d0": "one", "d1": "two"}, {}))
    # Asked again once, then perhaps item by item: in any case what is stored is right.
    assert server.requests[0]["input"] == server.requests[1]["input"] == ["one", "two"]
    with serving() as sound:
        space, _ = embedded(provider_of(sound), always, corpus_of({"d0": "one", "d1": "two"}, {}))
    np.testing.assert_array_equal(space.vectors, expected(["one", "two"]))

    once = changed(change)
    with serving(lambda request, n: once(request, n) if n == 0 else good(request)) as server:
        space, report = embedded(provider_of(server), tmp_path / "once")
    np.testing.assert_array_equal(space.vectors, expected(ALL))
    assert report.retries == 1


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"null", b'{"data": 3}', b'{"error": "x"}', b"\xff"]
)
def test_a_body_that_is_no_list_of_embeddings_is_a_bad_response(body: bytes) -> None:
    with pytest.raises(BadResponse):
        ordered_vectors(body, 1)


def test_a_half_failed_batch_costs_only_its_bad_items(tmp_path: Path) -> None:
    bad = {"document 1", "document 6", "query zero"}

    def behaviour(request: Body, _: int) -> Reply:
        if bad & set(request["input"]):
            return Reply(400, {"error": {"message": "bad input", "code": "invalid_value"}})
        return good(request)

    with serving(behaviour) as server, pytest.raises(InputError) as error:
        embedded(provider_of(server), tmp_path)
    assert [p.place for p in error.value.problems] == ["item d1", "item d6", "item q0"]
    assert error.value.problems[0].found == f"{server.url}: 400 Bad Request (invalid_value)"
    with serving() as server:
        space, _ = embedded(provider_of(server), tmp_path)
    assert set(server.texts) == bad
    np.testing.assert_array_equal(space.vectors, expected(ALL))


@pytest.mark.parametrize("status", [307, 401, 403, 404])
def test_a_wrong_address_or_key_makes_the_provider_missing_at_once(
    tmp_path: Path, status: int
) -> None:
    elsewhere = {"Location": "http://127.0.0.1:9/v1/embeddings"}
    with (
        serving(lambda *_: Reply(status, headers=elsewhere)) as server,
        pytest.raises(ProviderMissing, match=str(status)),
    ):
        embedded(provider_of(server), tmp_path)
    assert len(server.requests) == 1


def test_a_time_out_is_tried_again(tmp_path: Path) -> None:
    waits: list[float] = []

    def slow_once(request: Body, number: int) -> Reply:
        if number == 0:
            time.sleep(1.0)
        return good(request)

    with serving(slow_once) as server:
        provider = provider_of(server, timeout_seconds=0.3)
        space, report = embedded(provider, tmp_path, waits=waits)
    np.testing.assert_array_equal(space.vectors, expected(ALL))
    assert (report.retries, waits) == (1, [1.0])


def test_a_dropped_connection_is_tried_again(tmp_path: Path) -> None:
    with serving(then_good(Reply(drop=True), Reply(drop=True))) as server:
        space, report = embedded(provider_of(server), tmp_path)
    np.testing.assert_array_equal(space.vectors, expected(ALL))
    assert report.retries == 2


def test_a_response_cut_short_is_tried_again(tmp_path: Path) -> None:
    short = Reply(200, b'{"data": [', headers={"Content-Length": "5000"})
    with serving(then_good(short)) as server:
        provider = provider_of(server, timeout_seconds=0.3)
        space, report = embedded(provider, tmp_path)
    np.testing.assert_array_equal(space.vectors, expected(ALL))
    assert report.retries == 1


def test_a_server_that_dies_mid_run_costs_no_more_than_one_batch(tmp_path: Path) -> None:
    # Two answers, then no more; the third batch is the one that is lost.
    dying: Behaviour = lambda request, n: good(request) if n < 2 else Reply(drop=True)  # noqa: E731
    with serving(dying) as server, pytest.raises(ProviderMissing, match="no connection"):
        embedded(provider_of(server), tmp_path, retry=RetryPolicy(attempts=3))
    with pytest.raises(ProviderMissing, match="no connection"):  # and now nobody listens there
        embedded(provider_of(server), tmp_path, retry=RetryPolicy(attempts=2))
    with serving() as server:
        space, report = embedded(provider_of(server), tmp_path)
    assert (report.cache_hits, server.texts) == (8, ALL[8:])
    np.testing.assert_array_equal(space.vectors, expected(ALL))


SECRETS = {"d0": "zebra-in-document", "d1": "walrus-in-document"}


def telling(status: int) -> Behaviour:
    """Quotes the key and the texts in every place that a server can write to."""

    def behaviour(request: Body, _: int) -> Reply:
        told = f"{KEY} {request['input']}"
        error = {"message": told, "code": request["input"][0], "type": KEY, "param": told}
        return Reply(status, {"error": error, "data": told})

    return behaviour


@pytest.mark.parametrize("behaviour", [
    *map(telling, (200, 307, 400, 401, 429, 500)),
    lambda *_: Reply(drop=True),
    changed(lambda data: data[0].update(embedding=[float("nan"), 0, 0, 0])),
    changed(lambda data: data.pop()),
    changed(lambda data: [entry["embedding"].pop() for entry in data]),
])  # fmt: skip
def test_neither_key_nor_texts_ever_show(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    behaviour: Behaviour,
) -> None:
    for name in (None, "openai", "httpx", "httpx2", "httpcore", "httpcore2"):
        caplog.set_level(logging.DEBUG, name)
    with serving(behaviour) as server, pytest.raises(RagAssetsError) as raised:
        embedded(provider_of(server), tmp_path, corpus_of(SECRETS, {}), retry=RetryPolicy(2))
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert any(record.name.startswith("httpcore") for record in caplog.records)
    shown = [repr(provider_of(server)), *capfd.readouterr(), caplog.text]
    shown += [str(record.__dict__) for record in caplog.records]
    error: BaseException | None = raised.value
    while error is not None:
        shown += [str(error), repr(error), repr(vars(error)), *traceback.format_exception(error)]
        error = error.__cause__ or error.__context__
    for secret in (KEY, "zebra", "walrus"):
        assert not [text for text in shown if secret in text]


@pytest.mark.parametrize(
    "behaviour", [*map(telling, (307, 400, 429, 500)), lambda *_: Reply(drop=True)]
)
def test_no_failure_carries_the_clients_own_exception(behaviour: Behaviour) -> None:
    # The client's exceptions hold the request, with its headers and body.
    with serving(behaviour) as server, pytest.raises((BatchFailure, ProviderMissing)) as raised:
        provider_of(server).embed(["zebra"], "document")
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None


def test_what_was_stored_on_disk_holds_no_text(tmp_path: Path) -> None:
    with serving() as server:
        embedded(provider_of(server), tmp_path, corpus_of(SECRETS, {}))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert b"zebra" not in path.read_bytes()
        assert KEY.encode() not in path.read_bytes()


def test_without_the_package_the_provider_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "openai", None)
    with pytest.raises(ProviderMissing, match=r"install rag-assets\[openai\]"):
        embedded(provider_of("http://127.0.0.1:9/v1"), tmp_path, of=contract())
