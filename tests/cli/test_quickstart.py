"""The newcomer's first command, whole."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import datadistill as dd


def percentages(text: str) -> dict[str, float]:
    rows = re.findall(r"│ (.+?) +│ +([\d.]+)(?: ± [\d.]+)? % │", text)
    return {name: float(figure) for name, figure in rows}


def test_quickstart_distils_images_that_beat_as_many_real_ones(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "datadistill", "quickstart"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    table = percentages(done.stdout)
    untrained, real, distilled, everything = table.values()
    assert distilled >= 95
    assert distilled >= real + 10
    assert untrained < 25
    assert everything > 95

    made = dd.load(tmp_path / "quickstart" / "distilled.safetensors")
    assert made.inputs.shape == (10, 10, 1, 28, 28)
    assert made.labels.shape == (10, 10, 10)  # soft
    tested = dd.evaluate(made, dd.data.load("digits")[1], device="cpu")
    assert made.claim == tested.claim()
    assert round(100 * tested.mean, 1) == distilled

    with Image.open(tmp_path / "quickstart" / "distilled.png") as picture:
        pixels = np.asarray(picture.convert("L"))
    assert pixels.shape[0] > 100
    assert pixels.std() > 20
    assert "What to try next" in done.stderr
    assert "━" not in done.stderr, "no progress bars outside terminals"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["quickstart"]
    assert torch.isfinite(made.inputs).all()
