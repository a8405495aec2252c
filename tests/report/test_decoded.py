from pathlib import Path

import torch

import datadistill as dd
from datadistill.data.decoding import Decoder
from datadistill.report.decoded import write_decoded


def test_every_distilled_row_is_written_with_its_step_and_label(tmp_path: Path) -> None:
    labels = torch.arange(12) % 3
    made = dd.distill(
        (torch.randn(12, 4), labels), "mlp", steps=2, iterations=1, networks=1, validation=0.0
    )

    def rows(inputs: torch.Tensor) -> list[tuple[str, ...]]:
        return [(f"{one[0]:.3f}", "x\x1b[0m|") for one in inputs]

    decoder = Decoder(("first", "a|b"), rows)
    write_decoded(made, decoder, tmp_path / "rows.md")
    lines = (tmp_path / "rows.md").read_text().splitlines()
    assert lines[:2] == ["| step | label | first | a\\|b |", "| --- | --- | --- | --- |"]
    assert len(lines) == 2 + 6
    assert lines[6].startswith(f"| 2 | 1 | {made.inputs[1, 1, 0]:.3f} | x")
    assert "\x1b" not in lines[6]
