"""Decoding: refusals are named, sound pictures of every kind come out as the same upright 8-bit pixels."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image, ImageFile, PngImagePlugin

from cardpicker.stage_c.imaging import decode as decoding
from cardpicker.stage_c.imaging.decode import NormalizedImage, decode
from cardpicker.stage_c.outcomes import Unusable, UnusableKind
from cardpicker.tests.card_pictures import card, encode


def normalized(image: bytes) -> NormalizedImage:
    outcome = decode(image)
    assert isinstance(outcome, NormalizedImage), outcome
    return outcome


def refused(image: bytes) -> UnusableKind:
    outcome = decode(image)
    assert isinstance(outcome, Unusable), "it was decoded"
    assert "\n" not in outcome.detail
    return outcome.kind


def png_header(width: int, height: int) -> bytes:
    """Return a PNG that claims a size and holds almost nothing."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("image", "kind"),
    [
        (b"", UnusableKind.EMPTY),
        (b"name,size\nopt,3\n", UnusableKind.NOT_AN_IMAGE),
        (b"\n<!DOCTYPE html><html><body>Sign in</body></html>", UnusableKind.NOT_AN_IMAGE),
        (b"%PDF-1.7\n%", UnusableKind.UNSUPPORTED_TYPE),
        (b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>', UnusableKind.UNSUPPORTED_TYPE),
        (b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00", UnusableKind.UNSUPPORTED_TYPE),
        (b"\x00\x00\x00\x1cftypavif\x00\x00\x00\x00", UnusableKind.UNSUPPORTED_TYPE),
        (b"\x89PNG\r\n\x1a\n", UnusableKind.TRUNCATED),
        (b"GIF89a", UnusableKind.CORRUPT),
        (png_header(30_000, 200), UnusableKind.TOO_MANY_PIXELS),
        (png_header(9_500, 9_500), UnusableKind.TOO_MANY_PIXELS),
        (png_header(19_000, 19_000), UnusableKind.TOO_MANY_PIXELS),
        (png_header(1, 1), UnusableKind.TOO_SMALL),
        (png_header(700, 900), UnusableKind.TRUNCATED),
    ],
)
def test_bytes_that_are_no_card_are_refused_by_name(image: bytes, kind: UnusableKind) -> None:
    """Each kind of bad file has its own outcome, decided from its bytes."""
    assert refused(image) == kind


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "BMP", "GIF"])
def test_a_file_cut_short_is_refused_whatever_another_library_tolerates(
    format: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing end is never painted gray, even when the process-wide switch says so."""
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    whole = encode(card(px_per_mm=6), format)

    kind = refused(whole[: int(len(whole) * share)])

    assert kind in (UnusableKind.TRUNCATED, UnusableKind.CORRUPT)
    assert ImageFile.LOAD_TRUNCATED_IMAGES is True


def test_bytes_after_the_end_do_no_harm() -> None:
    """Trailing garbage after a whole picture is ignored."""
    assert normalized(encode(card(px_per_mm=6), "JPEG") + b"\x00" * 100).format == "JPEG"


@pytest.mark.parametrize("mode", ["CMYK", "L", "1", "P", "RGBA", "LA"])
def test_every_color_mode_becomes_rgb(mode: str) -> None:
    """A card in any mode shows the same picture, within what the mode can hold."""
    picture = card(px_per_mm=6)
    image = normalized(encode(picture.convert(mode), "JPEG" if mode == "CMYK" else "PNG"))

    assert image.mode == mode
    assert image.rgb.shape == (528, 378, 3)
    assert image.rgb.dtype == image.gray.dtype == np.uint8
    coarse = np.asarray(picture.convert("L").resize((6, 8), Image.Resampling.BOX), dtype=int)
    seen = np.asarray(Image.fromarray(image.gray).resize((6, 8), Image.Resampling.BOX), dtype=int)
    assert np.abs(coarse - seen).max() < 24


@pytest.mark.parametrize("format", ["PNG", "TIFF"])
def test_sixteen_bits_are_scaled_not_clipped(format: str) -> None:
    """A full-range 16-bit gradient keeps its middle gray."""
    gradient = np.linspace(0, 65535, 400 * 300).reshape(400, 300).astype(np.uint16)

    image = normalized(encode(Image.fromarray(gradient), format))

    assert abs(float(image.gray.mean()) - 127.5) < 2
    assert int(image.gray[0, 0]) == 0
    assert int(image.gray[-1, -1]) == 255


def test_hidden_color_under_transparency_does_not_show() -> None:
    """Two pictures that look the same are the same, whatever their transparent pixels hide."""
    pixels = np.zeros((300, 200, 4), dtype=np.uint8)
    pixels[100:200, 50:150] = (10, 20, 30, 255)
    other = pixels.copy()
    other[..., :3][pixels[..., 3] == 0] = (250, 0, 0)

    plain, colored = (normalized(encode(Image.fromarray(p))) for p in (pixels, other))

    assert np.array_equal(plain.rgb, colored.rgb)
    assert plain.rgb[0, 0].tolist() == [255, 255, 255]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_undone(orientation: int) -> None:
    """A camera's turn or mirror never reaches the readings."""
    upright = card(px_per_mm=6)
    undo = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}
    stored = upright.transpose(Image.Transpose(undo[orientation])) if orientation > 1 else upright
    exif = Image.Exif()
    exif[0x0112] = orientation

    image = normalized(encode(stored, "JPEG", exif=exif, quality=95))

    assert (image.width_px, image.height_px) == upright.size
    assert np.abs(image.rgb.astype(int) - np.asarray(upright, dtype=int)).mean() < 4


@pytest.mark.parametrize("format", ["GIF", "WEBP", "PNG"])
def test_an_animation_shows_its_first_frame(format: str) -> None:
    """Later frames are not looked at."""
    first, second = card(px_per_mm=4), Image.new("RGB", (252, 352), (255, 0, 0))

    image = normalized(encode(first, format, save_all=True, append_images=[second], duration=100))

    assert np.abs(image.gray.astype(int) - np.asarray(first.convert("L"), dtype=int)).mean() < 12


def test_odd_metadata_do_not_spoil_a_sound_picture() -> None:
    """A broken color profile and broken EXIF are passed over."""
    picture = card(px_per_mm=6)
    image = encode(picture, "JPEG", icc_profile=b"no profile at all", exif=b"Exif\x00\x00MM\x00*broken")

    assert normalized(image).gray.shape == (528, 378)


def test_a_metadata_bomb_is_an_outcome_and_the_next_image_is_fine() -> None:
    """Huge compressed text ends as an outcome, not as an exception."""
    info = PngImagePlugin.PngInfo()
    info.add_text("comment", "a" * 70_000_000, zip=True)

    outcome = decode(encode(card(px_per_mm=4), "PNG", pnginfo=info))

    assert isinstance(outcome, Unusable | NormalizedImage)
    assert normalized(encode(card(px_per_mm=4))).format == "PNG"


@pytest.mark.parametrize("format", ["JPEG", "PNG"])
def test_large_pictures_are_reduced_by_a_whole_factor(format: str) -> None:
    """A print-ready picture keeps enough pixels to read, and no more."""
    picture = card(px_per_mm=4).resize((2520, 3520))

    image = normalized(encode(picture, format))

    assert image.reduced_by == 2
    assert (image.source_width_px, image.source_height_px) == (2520, 3520)
    assert image.height_px >= decoding.WORK_LONG_SIDE_PX


def test_pixels_cannot_be_changed_by_an_extractor() -> None:
    """One extractor cannot spoil the picture for the next."""
    image = normalized(encode(card(px_per_mm=4)))

    with pytest.raises(ValueError, match="read-only"):
        image.rgb[0, 0] = 0


def test_random_damage_never_raises() -> None:
    """Whatever bytes are flipped, decoding ends as a picture or as a named refusal."""
    rng = np.random.default_rng(3)
    for format in ("JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP"):
        whole = bytearray(encode(card(px_per_mm=3), format))
        for _ in range(25):
            damaged = bytearray(whole)
            for place in rng.integers(0, len(damaged), 20):
                damaged[place] = int(rng.integers(0, 256))
            assert isinstance(decode(bytes(damaged)), Unusable | NormalizedImage)


def test_decoding_leaves_no_file_open() -> None:
    """A thousand broken files leave no descriptor behind."""
    import psutil

    broken = encode(card(px_per_mm=3), "JPEG")[:2000]
    decode(broken)
    before = psutil.Process().num_fds()
    for _ in range(200):
        decode(broken)

    assert psutil.Process().num_fds() <= before
    assert io.BytesIO(broken).read(2) == b"\xff\xd8"
