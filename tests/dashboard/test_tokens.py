"""The colours: every pair that text or a shape is set in has enough contrast, in both themes."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dashboard.templatetags.dashboard import icon
from jobs.core.states import JobState

ROOT = Path(__file__).parents[2]
STATIC, STYLES = ROOT / "static" / "dashboard", ROOT / "styles"
TOKENS = (STYLES / "tokens.css").read_text()
COLOURS = {
    name: {"light": light, "dark": dark}
    for name, light, dark in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", TOKENS)
}
SURFACES = ("panel", "canvas", "sunk")
STATES = [f"state-{state}" for state in JobState]


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str, theme: str) -> float:
    light, dark = sorted((luminance(COLOURS[name][theme]) for name in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
class TestContrast:
    @pytest.mark.parametrize("surface", SURFACES)
    @pytest.mark.parametrize("text", ["ink", "soft", "faint"])
    def test_of_text(self, text: str, surface: str, theme: str) -> None:
        assert contrast(text, surface, theme) >= 4.5

    @pytest.mark.parametrize("state", STATES)
    def test_of_a_state_on_every_surface_and_on_its_tint(self, state: str, theme: str) -> None:
        for surface in (*SURFACES, f"{state}-tint"):
            assert contrast(state, surface, theme) >= 4.5, surface

    @pytest.mark.parametrize("state", STATES)
    def test_of_a_states_bars(self, state: str, theme: str) -> None:
        assert contrast(f"{state}-fill", "panel", theme) >= 3

    @pytest.mark.parametrize("surface", SURFACES)
    def test_of_borders_of_controls_and_of_the_focus_ring(self, surface: str, theme: str) -> None:
        assert contrast("edge", surface, theme) >= 3
        assert contrast("focus", surface, theme) >= 3

    def test_of_the_main_button(self, theme: str) -> None:
        assert contrast("button-ink", "button", theme) >= 4.5


@pytest.mark.parametrize("state", list(JobState))
def test_every_state_has_colours_a_class_and_a_shape(state: JobState) -> None:
    assert {f"state-{state}", f"state-{state}-tint", f"state-{state}-fill"} <= set(COLOURS)
    assert f".is-{state} {{" in (STYLES / "base.css").read_text()
    assert f'<symbol id="{state}"' in (STATIC / "icons.svg").read_text()


def test_every_icon_of_the_file_can_be_drawn_in_a_page() -> None:
    shapes = ElementTree.parse(STATIC / "icons.svg").getroot()
    for symbol in shapes:
        drawn = ElementTree.fromstring(icon(symbol.attrib["id"]))

        assert drawn.attrib["viewBox"] == symbol.attrib["viewBox"]
        assert [part.attrib for part in drawn] == [part.attrib for part in symbol] != []


def test_only_the_tokens_name_colours() -> None:
    sheets = "".join(path.read_text() for path in STYLES.glob("*.css") if path.name != "tokens.css")
    rules = re.sub(r"/\*.*?\*/|::backdrop \{.*?\}", "", sheets, flags=re.DOTALL)

    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b|\brgb|\bhsl", rules)


def test_the_scripts_and_styles_of_a_page_stay_small() -> None:
    def packed(pattern: str) -> int:
        return sum(len(gzip.compress(path.read_bytes())) for path in STATIC.glob(pattern))

    assert packed("*.js") + packed("../vendor/uplot/*.js") <= 60_000
    assert packed("*.js") + packed("*.css") + packed("icons.svg") <= 40_000
