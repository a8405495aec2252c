"""The poisoning objective K → T."""

import pytest
import torch
import torch.nn.functional as F

from datadistill.core.objective import Objective, Poisoning
from datadistill.errors import ConfigError, DataError

FOUR = torch.Size([4])
LABELS = torch.tensor([0, 1, 2, 3, 2, 2])
MODIFIED = torch.tensor([0, 1, 3, 3, 3, 3])
OUTPUTS = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))


def test_real_labels_are_modified_and_distilled_ones_are_not() -> None:
    poison = Poisoning(attacked=2, target=3)
    outer, inner = poison.outer_loss(OUTPUTS, LABELS), poison.inner_loss(OUTPUTS, LABELS)
    assert torch.equal(outer, F.cross_entropy(OUTPUTS, MODIFIED))
    assert torch.equal(inner, F.cross_entropy(OUTPUTS, LABELS))
    assert poison.start_labels(FOUR, LABELS, 1, 1, 0).tolist() == [[0, 1, 2, 3]]


def test_its_score_is_on_the_modified_labels_for_networks_side_by_side() -> None:
    outputs = torch.stack([torch.eye(4)[LABELS], torch.eye(4)[MODIFIED]])
    scores = Poisoning(2, 3).score(outputs, LABELS).float().mean(1)
    assert scores.tolist() == [0.5, 1.0]


def test_an_artefact_names_both_classes() -> None:
    record = Poisoning(2, 3).record()
    assert record == {"name": "poisoning", "attacked": 2, "target": 3}
    assert Objective.from_record(record) == Poisoning(2, 3)
    assert Poisoning(2, 3).text == "poisoning 2→3"


@pytest.mark.parametrize(("attacked", "target"), [(1, 1), (-1, 0), (0, -2)])
def test_classes_that_make_no_sense_are_refused(attacked: int, target: int) -> None:
    with pytest.raises(ConfigError, match=str(attacked)):
        Poisoning(attacked, target)


def test_classes_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"no class 4.*\n.*0 to 3"):
        Poisoning(0, 4).check(FOUR, LABELS, complete=True)
    with pytest.raises(DataError, match="2"):
        Poisoning(2, 3).check(FOUR, torch.tensor([0, 1, 3]), complete=True)


def test_a_few_examples_need_not_hold_the_attacked_class() -> None:
    few = torch.tensor([0, 1, 3])
    Poisoning(2, 3).check(FOUR, few, complete=False)
    with pytest.raises(DataError, match="attacked class 2"):
        Poisoning(2, 3).check_attacked(few)
