from __future__ import annotations

from tests.browser.conftest import Site, Windows


def test_a_window_is_lent_again_unless_its_clock_was_set(windows: Windows, site: Site) -> None:
    first = windows.lend(script=True)
    windows.take_back(site.url)
    assert windows.lend(script=True) is first

    first.new_page().clock.install()
    windows.take_back(site.url)

    second = windows.lend(script=True)
    windows.take_back(site.url)
    assert second is not first
