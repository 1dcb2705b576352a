"""The report as a browser opens it from disk, on a desk and on a telephone, in light and dark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rag_assets.report.page import report_of
from rag_assets_tests.browser.conftest import FLAGS
from rag_assets_tests.statistics.test_evidence import MANY, judged
from rag_assets_tests.warehouse.examples import built

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

# Pixels of the page beside the window, and the luminance of its paper from 0 to 255.
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
PAPER = "getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number)"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report with a loss, its interval and its pictures."""
    file: Path = tmp_path_factory.mktemp("a report") / "many.html"
    file.write_text(report_of(judged(built(MANY)), "many", "r1", redact=False).html, "utf-8")
    return file.as_uri()


@pytest.fixture(scope="module")
def launched(chromium: str) -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield browser
        browser.close()


def opened(browser: Browser, address: str, width: int, scheme: str) -> Page:
    """The report in a window of its own; it asks for nothing else and says nothing."""
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.goto(address)
    page.wait_for_load_state("networkidle")
    assert (asked, said) == ([address], [])
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits_and_its_pictures_take_its_colours(
    launched: Browser, report: str, width: int, scheme: str
) -> None:
    page = opened(launched, report, width, scheme)
    assert page.evaluate(WIDER) == 0
    paper = sum(page.evaluate(PAPER)) / 3
    assert (paper < 64) == (scheme == "dark")
    text = page.locator("#statistics svg text").first
    ink = text.evaluate("e => getComputedStyle(e).fill.match(/[0-9]+/g).map(Number)")
    assert abs(sum(ink) / 3 - paper) > 128, "the text of a picture can be read"
    page.context.close()


def test_differences_open_as_a_table_and_print_leaves_them_out(
    launched: Browser, report: str
) -> None:
    page = opened(launched, report, 1280, "light")
    details = page.locator("#statistics details")
    assert not details.locator("table").is_visible()
    details.locator("summary").click()
    assert details.locator("tbody tr").count() == 18
    assert details.locator("table").is_visible()
    page.emulate_media(media="print")
    assert not details.is_visible()
    assert page.locator("#statistics svg").first.is_visible()
    page.context.close()
