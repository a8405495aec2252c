"""From a story to charts, each with what it was measured on."""

from collections.abc import Sequence

from .charts import AnyChart, Bar, BarChart, Line, LineChart, MatrixChart
from .names import data_name
from .sentences import class_names, each_text, made_text, networks_text
from .story import Story

SHOWN_EPOCHS = 7
"""Epochs that get a line each; of more, all updates are one line."""


def charts_of(story: Story) -> list[AnyChart]:
    """All charts of a run, in the order of the page."""
    found = [
        baselines(story),
        curve([story]),
        matrix(story),
        rates(story),
        loss([story]),
        held_out([story]),
        learned_rates(story),
    ]
    return [chart for chart in found if chart is not None]


def baselines(story: Story) -> BarChart | None:
    """Accuracy of the distilled data beside that of every baseline."""
    table, distilled = story.baselines, story.distilled
    if table is None or distilled is None:
        return None
    bars = [
        Bar(
            name,
            row.mean,
            row.std,
            (row.paper_percent[0] or 0) / 100 if row.paper_percent else None,
            own=name == "distilled",
        )
        for name, row in table.rows.items()
    ]
    most = max(row.networks for row in table.rows.values())
    chosen = "held-out training data" if table.select == "train" else "the test data"
    most_networks = ("up to " if most > 1 else "") + networks_text(most, distilled, 0)
    paper = " The dashed mark is the paper's figure." if any(b.paper for b in bars) else ""
    return BarChart(
        "baselines",
        "Accuracy beside the baselines",
        f"{data_name(table.data)} test, {table.test_examples:,} examples; "
        f"{most_networks}. Settings of the baselines were chosen on {chosen}. "
        f"Whiskers: one standard deviation over sets of images and networks.{paper}",
        "accuracy",
        bars,
    )


def curve(stories: Sequence[Story]) -> LineChart | None:
    """The metric after every update, with its deviation as a band."""
    told = [(s, s.measured, s.distilled) for s in stories]
    found = [(s, m, d) for s, m, d in told if m is not None and d is not None]
    if not found:
        return None
    lines = [
        Line.banded(
            s.name if len(stories) > 1 else "",
            [p.updates for p in m.curve],
            [p.mean for p in m.curve],
            [p.std for p in m.curve] if m.networks > 1 else (),
            shares=m.metric.startswith("accuracy"),
            dots=len(m.curve) <= 40,
        )
        for s, m, _ in found
    ]
    whats = [
        f"{data_name(m.data)} {m.split}, {m.examples:,} examples; "
        f"{networks_text(m.networks, d, m.seed)}"
        for _, m, d in found
    ]
    bands = any(line.low for line in lines)
    shown = "Mean, with a band of one standard deviation over networks. " if bands else ""
    each = each_text([f"{what}." for what in whats], [s.name for s, _, _ in found])
    first, distilled = found[0][1], found[0][2]
    steps, epochs = distilled.header.schedule.steps, distilled.header.schedule.epochs
    return LineChart(
        "curve",
        f"{first.metric.capitalize()} after every update",
        f"{shown}{each}",
        "updates made with distilled data",
        first.metric.partition(" on ")[0],
        lines,
        percent=first.metric.startswith("accuracy"),
        breaks=[steps * e for e in range(1, epochs)] if steps > 1 and len(found) == 1 else (),
    )


def matrix(story: Story, *, before: bool = False) -> MatrixChart | None:
    """What networks take each class for, after training on the distilled data or before."""
    measured, distilled = story.measured, story.distilled
    counts = measured and (measured.before if before else measured.after)
    if measured is None or distilled is None or not counts:
        return None
    when = "before any update" if before else "after all updates"
    return MatrixChart(
        "confusion-before" if before else "confusion",
        f"Confusion matrix {when}",
        f"Percent of each class; {data_name(measured.data)} {measured.split}, "
        f"{measured.examples:,} examples; "
        f"{networks_text(measured.networks, distilled, measured.seed)}.",
        class_names(distilled, len(counts)),
        counts,
    )


def reached(stories: Sequence[Story]) -> BarChart | None:
    """What every run claims, if all claim an accuracy on the same data."""
    found = [(s, s.distilled.claim) for s in stories if s.distilled and s.distilled.claim]
    claims = [claim for _, claim in found]
    kinds = {(claim.metric, claim.data, claim.split, claim.examples) for claim in claims}
    if len(found) < len(stories) or len(kinds) != 1 or not claims[0].is_accuracy:
        return None
    bars = [
        Bar(story.name, claim.mean, claim.std if claim.networks > 1 else None, own=True)
        for story, claim in found
    ]
    texts = [
        f"{networks_text(claim.networks, story.distilled, claim.seed)}."
        for story, claim in found
        if story.distilled
    ]
    several = any(bar.deviation for bar in bars)
    whiskers = " Whiskers: one standard deviation over networks." if several else ""
    return BarChart(
        "reached",
        "Accuracy of the runs",
        f"{data_name(claims[0].data)} {claims[0].split}, {claims[0].examples:,} examples; "
        f"{each_text(texts, [s.name for s in stories])}{whiskers}",
        claims[0].metric,
        bars,
    )


def compared(stories: Sequence[Story]) -> list[AnyChart]:
    """The charts that show several runs."""
    found = [reached(stories), curve(stories), held_out(stories), loss(stories)]
    return [chart for chart in found if chart is not None]


def rates(story: Story) -> LineChart | None:
    """The learning rate of every update: a line per epoch over the steps, if there are some."""
    distilled = story.distilled
    if distilled is None:
        return None
    values: list[list[float]] = distilled.learning_rates.double().tolist()
    epochs, steps = len(values), len(values[0])
    if epochs * steps == 1:  # beside the images there is all of it
        return None
    if steps > 1 and epochs <= SHOWN_EPOCHS:
        places = range(1, steps + 1)
        lines = [Line(f"epoch {e + 1}", places, row, dots=True) for e, row in enumerate(values)]
        return LineChart("rates", "Learning rates per epoch", made_text(story), "step", "η", lines)
    flat = [rate for row in values for rate in row]
    line = Line("", range(1, len(flat) + 1), flat, dots=len(flat) <= 40)
    x = "epoch" if steps == 1 else "update"
    breaks = [steps * e + 0.5 for e in range(1, epochs)] if steps > 1 and epochs <= 30 else ()
    return LineChart(
        "rates", "Learning rates per epoch", made_text(story), x, "η", [line], breaks=breaks
    )


def loss(stories: Sequence[Story]) -> LineChart | None:
    """The outer loss over the outer steps."""
    lines: list[Line] = []
    for story in stories:
        kept = [(row.outer_step, row.loss) for row in story.rows if row.loss is not None]
        if kept:
            name = story.name if len(stories) > 1 else ""
            lines.append(Line.binned(name, [k for k, _ in kept], [v for _, v in kept]))
    if not lines:
        return None
    positive = all(min(line.low or line.y) > 0 for line in lines)
    range_ = " The band is the range of neighbouring outer steps." if lines[0].low else ""
    return LineChart(
        "loss",
        "Outer loss during distillation",
        f"Mean over the networks of each outer step, on minibatches of training data.{range_} "
        f"{each_text([made_text(s) for s in stories], [s.name for s in stories])}",
        "outer step",
        "loss",
        lines,
        log=positive,
    )


def held_out(stories: Sequence[Story]) -> LineChart | None:
    """What networks reach on held-out training data along the way."""
    lines: list[Line] = []
    metric, networks = "", list[int]()
    for story in stories:
        kept = [(row.outer_step, row.held_out) for row in story.rows if row.held_out]
        if not kept:
            continue
        scores = [score for _, score in kept]
        metric, several = scores[0].metric, scores[0].networks > 1
        networks.append(scores[0].networks)
        lines.append(
            Line.banded(
                story.name if len(stories) > 1 else "",
                [step for step, _ in kept],
                [score.mean for score in scores],
                [score.std for score in scores] if several else (),
                shares=metric.startswith("accuracy"),
                dots=True,
            )
        )
    if not lines:
        return None
    counts = " and ".join(f"{count}" for count in dict.fromkeys(networks))
    band = ", with a band of one standard deviation" if max(networks) > 1 else ""
    plural = "network" if counts == "1" else f"networks{band}"
    return LineChart(
        "held-out",
        f"Held-out {metric} during distillation",
        f"On training data that were held out, {counts} {plural}. "
        f"{each_text([made_text(s) for s in stories], [s.name for s in stories])}",
        "outer step",
        metric.partition(" on ")[0],
        lines,
        percent=metric.startswith("accuracy"),
    )


def learned_rates(story: Story) -> LineChart | None:
    """The range of the learned learning rates over the outer steps."""
    rows = story.rows
    if not rows or len({row.learning_rates.mean for row in rows}) == 1:
        return None
    step = max(1, len(rows) // 300)
    kept = rows[::step]
    line = Line(
        "",
        [row.outer_step for row in kept],
        [row.learning_rates.mean for row in kept],
        [row.learning_rates.min for row in kept],
        [row.learning_rates.max for row in kept],
    )
    return LineChart(
        "learned-rates",
        "Learning rates during distillation",
        f"Mean of all learning rates, and their range. {made_text(story)}",
        "outer step",
        "η",
        [line],
    )
