"""The newcomer's first command, whole."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import datadistill as dd
from tests.processes import finished


def percentages(text: str) -> dict[str, float]:
    rows = re.findall(r"│ (.+?) +│ +([\d.]+)(?: ± [\d.]+)? % │", text)
    return {name: float(figure) for name, figure in rows}


SHORTER = """
import sys
from datadistill.cli import quickstart
from datadistill.cli.main import main
quickstart.RECIPE = "shorter.yaml"
sys.exit(main(["quickstart"]))
"""


@pytest.mark.parametrize(
    ("outer_steps", "least"), [(360, 75), pytest.param(1200, 85, marks=pytest.mark.slow)]
)
def test_quickstart_distils_ten_images_that_beat_ten_real_ones(
    outer_steps: int, least: int, tmp_path: Path
) -> None:
    recipe = (Path(dd.__file__).parent / "recipes" / "digits-fixed.yaml").read_text()
    scaled = recipe.replace("iterations: 1200", f"iterations: {outer_steps}")
    (tmp_path / "shorter.yaml").write_text(scaled)
    done = finished("-c", SHORTER, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    table = percentages(done.stdout)
    untrained, real, distilled, everything = table.values()
    assert distilled >= least
    assert distilled >= real + 10
    assert untrained < 25
    assert everything > 95

    made = dd.load(tmp_path / "quickstart" / "distilled.safetensors")
    assert made.inputs.shape == (1, 10, 1, 28, 28)
    assert made.labels.tolist() == [[*range(10)]]
    tested = dd.evaluate(made, dd.data.load("digits")[1], device="cpu")
    assert made.claim == tested.claim()
    assert round(100 * tested.mean, 1) == distilled

    with Image.open(tmp_path / "quickstart" / "distilled.png") as picture:
        pixels = np.asarray(picture.convert("L"))
    assert pixels.shape[0] > 100
    assert pixels.std() > 20
    assert "What to try next" in done.stderr
    assert "━" not in done.stderr, "no progress bars outside terminals"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["quickstart", "shorter.yaml"]
    assert torch.isfinite(made.inputs).all()
