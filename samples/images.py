"""Thumbnails of image files: upright, never enlarged, without the original's metadata.

Pillow is imported where it is used: workers that never see an image need not carry it.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from samples import outputs

if TYPE_CHECKING:
    from PIL import Image

SOURCES = Path(__file__).parent / "data" / "images"

SMALLEST, LARGEST = 16, 2048
"""Bounds of a thumbnail's longer side, in pixels."""

MOST_PIXELS = 50_000_000
"""Larger images are refused before they are unpacked: a file of a few kilobytes can claim gigabytes."""


class ImageUnusable(Exception):
    """The file is missing, is no image, is cut short, or is too large."""


def sources() -> list[str]:
    """Names of the image files that ship with the samples."""
    return sorted(path.name for path in SOURCES.iterdir() if path.is_file())


def thumbnails(source: str, sizes: Sequence[int]) -> Iterator[tuple[int, Path]]:
    """Writes one thumbnail for each size, whose longer side it is, and yields it. Raises ImageUnusable."""
    from PIL import Image

    if wrong := [size for size in sizes if not SMALLEST <= size <= LARGEST]:
        raise ImageUnusable(f"Sizes must be from {SMALLEST} to {LARGEST} pixels, not {wrong[0]}")
    image = _load(source)
    for size in sizes:
        smaller = image.copy()
        smaller.thumbnail((size, size), Image.Resampling.LANCZOS)
        content = io.BytesIO()
        smaller.save(content, "JPEG", quality=85, optimize=True)
        yield size, outputs.write("thumbnails", f"{Path(source).stem}-{size}.jpg", content.getvalue())


def _load(source: str) -> Image.Image:
    from PIL import Image, ImageOps, UnidentifiedImageError

    # Compared with the list, not joined to a path: a name from a payload must not reach other folders.
    if source not in sources():
        raise ImageUnusable(f"There is no image {source!r}; there are {', '.join(sources())}")
    try:
        with warnings.catch_warnings(), Image.open(SOURCES / source) as image:
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the next line is stricter
            width, height = image.size
            if width * height > MOST_PIXELS:
                raise ImageUnusable(f"{source} has {width} × {height} pixels; at most {MOST_PIXELS:,} are taken")
            return ImageOps.exif_transpose(image).convert("RGB")
    except UnidentifiedImageError:
        raise ImageUnusable(f"{source} is not an image that can be read") from None
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ImageUnusable(f"{source} is damaged: {error}") from error
