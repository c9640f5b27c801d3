"""Words of an address of which there are only so many, as the fields of a form offer them."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

SHOWN = 40
"""Characters of a word that is none of them."""


def chosen(text: str, noun: str, known: Iterable[str]) -> tuple[str, str]:
    """``(text, "")`` where it is one of ``known``, ``("", "")`` where nothing was chosen; else ``""`` and a sentence
    that says what there is: ``“rubbish” is no range. There are 15m, 1h and 6h.``
    """
    word, known = text.strip(), [each for each in known if each]
    if word in known or not word:
        return word, ""
    shown = "".join(letter for letter in word[:SHOWN] if letter.isprintable())
    near = get_close_matches(word[:SHOWN], known, n=1)
    way = f"Did you mean {near[0]}?" if near else f"There are {', '.join(known[:-1])} and {known[-1]}."
    return "", f"“{shown}” is no {noun}. {way}"
