"""The report in a browser: from disk, on a desk and on a telephone; and its pictures in the UI."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rag_assets.report.files import report_path, write_report
from rag_assets.warehouse.build import build, rebuild
from rag_assets.warehouse.release import publish
from rag_assets_tests.browser.conftest import FLAGS
from rag_assets_tests.browser.server import Server
from rag_assets_tests.statistics.test_evidence import MANY, judged
from rag_assets_tests.browser.test_ui import materialize_all
from rag_assets_tests.warehouse.examples import MODELS, base_tables

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser
