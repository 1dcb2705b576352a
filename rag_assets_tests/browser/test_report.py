"""The report in a browser: from disk, on a desk and on a telephone; and its pictures in the UI."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.browser
