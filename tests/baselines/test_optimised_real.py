from datadistill.baselines import best_sets


def test_the_best_sets_are_picked_best_first_and_of_equal_ones_the_first() -> None:
    scores = [0.1, 0.7, 0.3, 0.7, 0.9, 0.2]
    asked: list[int] = []

    def score(number: int) -> float:
        asked.append(number)
        return scores[number]

    assert best_sets(score, drawn=6, kept=3) == [4, 1, 3]
    assert asked == [*range(6)], "every set is scored once"
