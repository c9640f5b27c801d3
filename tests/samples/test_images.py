"""Thumbnails: the right sizes, of whole images only."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

from samples import images, outputs


def size_of(path: Path) -> tuple[int, int]:
    with Image.open(path) as image:
        image.load()  # fails for a file that is not whole
        return image.size


def test_each_size_becomes_a_file_whose_longer_side_has_it() -> None:
    made = dict(images.thumbnails("rocket.jpg", [64, 256]))

    assert {size: size_of(path) for size, path in made.items()} == {64: (64, 43), 256: (256, 171)}
    assert [path.name for path in made.values()] == ["rocket-64.jpg", "rocket-256.jpg"]


@pytest.mark.parametrize("source", [name for name in images.sources() if not name.startswith("interrupted")])
def test_every_shipped_image_can_be_made_smaller(source: str) -> None:
    ((_, path),) = images.thumbnails(source, [100])

    assert max(size_of(path)) == 100


def test_a_small_image_is_not_enlarged() -> None:
    ((_, path),) = images.thumbnails("cat.jpg", [2048])

    assert size_of(path) == size_of(images.SOURCES / "cat.jpg")


def test_an_upload_that_was_cut_short_is_damaged() -> None:
    with pytest.raises(images.ImageUnusable, match=r"interrupted-upload\.jpg is damaged"):
        list(images.thumbnails("interrupted-upload.jpg", [64]))

    assert outputs.latest("thumbnails") == []


@pytest.mark.parametrize("source", ["../seattle-weather.csv", "/etc/passwd", "", "none.jpg", "a\0b"])
def test_only_shipped_images_are_opened(source: str) -> None:
    with pytest.raises(images.ImageUnusable, match="There is no image"):
        list(images.thumbnails(source, [64]))


@pytest.mark.parametrize("size", [0, -1, 15, 2049, 10**9])
def test_senseless_sizes_are_refused(size: int) -> None:
    with pytest.raises(images.ImageUnusable, match=f"not {size}"):
        list(images.thumbnails("cat.jpg", [64, size]))


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of images that a test may fill."""
    monkeypatch.setattr(images, "SOURCES", tmp_path)
    return tmp_path


def test_what_is_no_image_is_refused(shelf: Path) -> None:
    (shelf / "letter.jpg").write_text("Dear Sir or Madam")

    with pytest.raises(images.ImageUnusable, match="not an image"):
        list(images.thumbnails("letter.jpg", [64]))


def test_a_file_that_claims_to_be_enormous_is_not_unpacked(shelf: Path) -> None:
    content = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(content, "PNG")
    (shelf / "bomb.png").write_bytes(content.getvalue())

    with pytest.raises(images.ImageUnusable, match=r"20000 × 20000|decompression bomb"):
        list(images.thumbnails("bomb.png", [64]))


def test_a_photo_taken_sideways_stands_upright_and_loses_its_metadata(shelf: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # orientation: the camera was turned
    exif[0x010F] = "A camera that knows where it was"
    Image.new("RGB", (200, 100)).save(shelf / "sideways.jpg", exif=exif)

    ((_, path),) = images.thumbnails("sideways.jpg", [100])

    with Image.open(path) as made:
        assert made.size == (50, 100)
        assert not made.getexif()
