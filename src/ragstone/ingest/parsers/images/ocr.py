"""Pictures of text → lines with their places: one seam, two engines, whichever is installed."""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragstone.core.errors import ParseError, UnsupportedFormat
from ragstone.ingest.parsers.pdf.layout import TextSpan
from ragstone.ingest.parsers.sandbox.limits import die_with

if TYPE_CHECKING:
    from PIL.Image import Image

LONGEST_SIDE = 2000
"""Pixels: at A4 about 170 to the inch, where print is read well."""
NOT_INSTALLED = "to read pictures and scanned pages: pip install 'ragstone[ocr]'"
_DETECTED_SIDE = 1280
_TESSERACT_SECONDS = 60
_SURE = 0.5
_WORD_LEVEL = "5"

Engine = Callable[["Image"], list[TextSpan]]


class OcrFailed(ParseError):
    """An engine is there and could not read this picture."""


def is_installed() -> bool:
    """Return whether an OCR engine is installed."""
    return _engine() is not None


def read_image(image: Image) -> list[TextSpan]:
    """Return the lines of a picture, top to bottom; y grows upwards from its foot, in pixels."""
    engine = _engine()
    if engine is None:
        raise UnsupportedFormat("pictures cannot be read: no OCR engine is installed", hint=NOT_INSTALLED)
    return engine(image.convert("RGB"))


@cache
def _engine() -> Engine | None:
    if program := shutil.which("tesseract"):
        return partial(_read_with_tesseract, program)
    if find_spec("rapidocr") and find_spec("onnxruntime"):
        return _read_with_rapidocr
    return None


def _read_with_tesseract(program: str, image: Image) -> list[TextSpan]:
    picture = io.BytesIO()
    image.save(picture, "PNG")
    try:
        done = subprocess.run(  # noqa: S603  (a program the operator installed, and no shell)
            [program, "stdin", "stdout", "--psm", "3", "tsv"],
            input=picture.getvalue(),
            capture_output=True,
            timeout=_TESSERACT_SECONDS,
            check=True,
            env={**os.environ, "OMP_THREAD_LIMIT": "1"},
            preexec_fn=partial(die_with, os.getpid()),
        )
    except subprocess.TimeoutExpired as problem:
        raise OcrFailed(
            f"tesseract took longer than {_TESSERACT_SECONDS} s", hint="scan the page again, with fewer pixels"
        ) from problem
    except (subprocess.CalledProcessError, OSError) as problem:
        said = getattr(problem, "stderr", b"") or str(problem).encode()
        raise OcrFailed(
            f"tesseract failed: {said.decode('utf-8', 'replace').strip()[-200:]}",
            hint="check that `tesseract --list-langs` works",
        ) from problem
    return _tesseract_lines(done.stdout.decode("utf-8", "replace"), image.height)


def _tesseract_lines(table: str, height: int) -> list[TextSpan]:
    lines: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in csv.DictReader(io.StringIO(table), delimiter="\t", quoting=csv.QUOTE_NONE):
        if row["level"] == _WORD_LEVEL and row["text"].strip():
            lines.setdefault((row["block_num"], row["par_num"], row["line_num"]), []).append(row)
    spans = []
    for words in lines.values():
        if sum(float(word["conf"]) for word in words) < 100 * _SURE * len(words):
            continue
        corners = [
            (int(word["left"]) + dx * int(word["width"]), int(word["top"]) + dy * int(word["height"]))
            for word in words
            for dx, dy in ((0, 0), (1, 1))
        ]
        spans.append(_span(" ".join(word["text"] for word in words), corners, height))
    return spans


def _read_with_rapidocr(image: Image) -> list[TextSpan]:
    import numpy as np

    try:
        result = _rapidocr()(np.asarray(image)[:, :, ::-1])
    except MemoryError:
        raise
    except Exception as problem:
        # The engine's own errors have no common root; a picture it cannot read must not end the document.
        if "bad_alloc" in str(problem) or "Failed to allocate" in str(problem):
            raise MemoryError from problem
        raise OcrFailed(f"OCR failed: {type(problem).__name__}", hint="scan the page again") from problem
    if result.txts is None:
        return []
    return [_span(text, box, image.height) for text, box in zip(result.txts, result.boxes, strict=True) if text.strip()]


@cache
def _rapidocr() -> Any:
    """Return the engine with the models of its own package: nothing is downloaded, one thread, little memory."""
    import cv2
    import rapidocr

    cv2.setNumThreads(1)
    models = Path(rapidocr.__file__).parent / "models"
    parameters = {
        "Global.log_level": "critical",
        "Global.max_side_len": LONGEST_SIDE,
        "Global.text_score": _SURE,
        "EngineConfig.onnxruntime.intra_op_num_threads": 1,
        "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        "Det.limit_type": "max",
        "Det.limit_side_len": _DETECTED_SIDE,
        "Cls.cls_batch_num": 1,
        "Rec.rec_batch_num": 1,
    }
    for stage in ("det", "cls", "rec"):
        parameters[f"{stage.title()}.model_path"] = str(next(models.glob(f"*_{stage}_*.onnx")))
    return rapidocr.RapidOCR(params=parameters)


def _span(text: str, corners: Iterable[Sequence[float]], height: int) -> TextSpan:
    xs, ys = zip(*((float(x), float(y)) for x, y in corners), strict=True)
    top, bottom = height - min(ys), height - max(ys)
    return TextSpan(" ".join(text.split()), min(xs), max(xs), bottom, top, size=top - bottom)
