"""A running UI and a browser page that notices every request and every error."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from rag_assets_tests.browser.server import Server, serving

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page, Route

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
LOCAL = ("127.0.0.1", "localhost")


@dataclass
class Visit:
    """What the browser saw: hosts it asked, requests that would leave the machine, errors."""

    asked: int = 0
    outside: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def request(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme in ("data", "blob"):
            return
        self.asked += 1
        if parts.hostname not in LOCAL:
            self.outside.append(url)

    def route(self, route: Route) -> None:
        local = urlsplit(route.request.url).hostname in LOCAL
        route.continue_() if local else route.abort()

    def console(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(message.text)


@pytest.fixture(scope="module")
def chromium() -> str:
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("no `chromium` on the PATH: the UI is not tested in a browser")
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    return path


@pytest.fixture(scope="module")
def ui(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(["dg", "dev"], tmp_path_factory.mktemp("ui")) as server:
        yield server


@pytest.fixture(scope="module")
def browser(
    chromium: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[BrowserContext, Visit]]:
    from playwright.sync_api import sync_playwright

    visit = Visit()
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"),
            executable_path=chromium,
            args=list(FLAGS),
            viewport={"width": 1280, "height": 800},
        )
        context.set_default_timeout(60_000)
        context.route("**/*", visit.route)
        context.on("request", lambda request: visit.request(request.url))
        context.on("console", visit.console)
        context.on("weberror", lambda error: visit.errors.append(str(error.error)))
        context.on(
            "page", lambda page: page.on("websocket", lambda socket: visit.request(socket.url))
        )
        yield context, visit
        context.close()


@pytest.fixture
def page(browser: tuple[BrowserContext, Visit]) -> Iterator[Page]:
    """A new tab. Whatever a test did with it, nothing left the machine and nothing went wrong."""
    context, visit = browser
    page = context.new_page()
    yield page
    page.close()
    assert visit.asked > 0
    assert visit.outside == []
    assert visit.errors == []
