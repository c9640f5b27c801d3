"""The engine against a plain dictionary: Hypothesis draws verbs, crashes, clock jumps and restarts, both must agree."""

import pytest

pytest.register_assert_rewrite(f"{__name__}.machine")  # its assertions tell what they compared
