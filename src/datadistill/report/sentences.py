"""What a page says of a run in words, for headings and captions."""

from collections.abc import Sequence

from ..artefact import DistilledData
from ..core.objective import Classification
from ..durations import time_text
from ..pixels import are_images
from .names import data_name, initialization_name, network_name
from .story import Story

CLASSIFICATION = Classification().text


def networks_text(count: int, distilled: DistilledData, seed: int) -> str:
    """``10 LeNet networks, random initialization, seed 0``."""
    header = distilled.header
    networks = counted(count, f"{network_name(header.architecture.name)} network")
    kind = initialization_name(header.initialization.kind)
    return f"{networks}, {kind} initialization, seed {seed}"


def class_names(distilled: DistilledData, count: int) -> list[str]:
    """The names of the classes; their numbers where they have none."""
    names = distilled.class_names or []
    return names if len(names) == count else [str(number) for number in range(count)]


def headline(story: Story) -> str:
    """What was distilled, from what: one sentence."""
    distilled, config = story.distilled, story.config
    if distilled is None:
        assert config
        return (
            f"{data_name(config.data)} for {network_name(config.model)}, "
            f"{initialization_name(config.initialization)} initialization: "
            f"{counted(config.steps, 'step')} × {counted(config.epochs, 'epoch')}."
        )
    header = distilled.header
    real = header.configuration.get("training_examples")
    data = data_name(header.data)
    start = f"{real:,} training examples of {data}" if isinstance(real, int) else data
    steps, epochs = header.schedule.steps, header.schedule.epochs
    name, kind = network_name(header.architecture.name), header.initialization.kind
    objective = distilled.objective.text
    return (
        f"{start}, distilled into {counted(len(distilled), what(story))}. {name} with "
        f"{initialization_name(kind)} initialization trains on them in "
        f"{counted(steps * epochs, 'gradient step')} "
        f"({counted(steps, 'step')} × {counted(epochs, 'epoch')})"
        f"{'' if objective == CLASSIFICATION else f', for {objective}'}."
    )


def what(story: Story) -> str:
    """What a distilled input is called: an image, or an example."""
    distilled = story.distilled
    drawn = distilled is not None and are_images(distilled.inputs.shape[2:]) and not story.text
    return "image" if drawn else "example"


def counted(number: int, what: str) -> str:
    """``1 step``, ``2,000 steps``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def big_figure(story: Story) -> tuple[str, str]:
    """The figure that a run reaches, and the rest of the sentence; of an attack, what it turns."""
    claim, attack = (story.distilled.claim if story.distilled else None), story.attack
    if attack is not None:
        turned, others = attack.after.success, attack.after.others
        where = f"on {data_name(attack.data)} {attack.split}"
        over = f"over {counted(attack.networks, 'network')}"
        kept = f"accuracy on other classes {percent(others.mean, others.std)}"
        turns = f"of {turned.name}" if turned.name else "turned"
        return percent(turned.mean, turned.std), f"{turns} {where} {over}; {kept}"
    if claim is None:
        return "", "not measured"
    figure, _, rest = str(claim).partition(f" on {claim.data} {claim.split}")
    value, unit, metric = figure.partition(" % ") if claim.is_accuracy else (figure, "", "")
    metric = f"{metric} " if metric else ""
    return f"{value}{unit.rstrip()}", f"{metric}on {data_name(claim.data)} {claim.split}{rest}"


def beside(story: Story) -> str:
    """What the same networks reach on real images: the row most like ours, and all real data."""
    rows = story.baselines.rows if story.baselines else {}
    names = {
        "no adaptation": "without adaptation",
        "random real": f"on as many random real {what(story)}s",
        **dict.fromkeys(("all real", "full target", "full fine-tuning"), "on all real data"),
    }
    return ", ".join(
        f"{percent(rows[name].mean, rows[name].std)} {where}"
        for name, where in names.items()
        if name in rows
    )


def percent(mean: float, std: float | None) -> str:
    """A share and its standard deviation."""
    return f"{100 * mean:.1f}" + (f" ± {100 * std:.1f}" if std else "") + " %"


def cost(story: Story) -> list[tuple[str, str]]:
    """What the run and the use of its result take."""
    found: list[tuple[str, str]] = []
    if story.rows and story.seconds is not None:
        found.append(("outer steps", f"{story.outer_steps:,}"))
        found.append(("time of the outer steps", time_text(story.seconds)))
        each = story.seconds / max(story.outer_steps, 1)
        took = f"{each:,.3g} s" if each >= 1 else f"{1000 * each:.3g} ms"
        found.append(("per outer step", took))
        if rejected := story.rows[-1].rejected:
            found.append(("rejected outer steps", f"{rejected:,}"))
    if (distilled := story.distilled) is not None:
        found.append(("artefact", f"{distilled.nbytes / 2**20:.2f} MiB"))
        if taken := distilled.cost:
            operations = f"{rounded(taken.operations)} operations"
            text = f"{operations}, {taken.memory / 2**20:,.0f} MiB (estimate)"
            found.append(("training one network with it", text))
        found += [("computed by", str(one)) for one in distilled.header.engines[-1:]]
    return found


def rounded(number: float) -> str:
    """``120 million``: a large number in words."""
    for name in ("", " thousand", " million", " billion"):
        if number < 999.5:
            return f"{number:.3g}{name}"
        number /= 1000
    return f"{number:,.3g} trillion"


def made_text(story: Story) -> str:
    """What a run is about, for a caption."""
    config, distilled = story.config, story.distilled
    if distilled is not None:
        header = distilled.header
        data, model, kind = header.data, header.architecture.name, header.initialization.kind
        settings = header.configuration
        seed, networks = settings.get("seed", 0), settings.get("networks", 1)
    elif config is not None:
        data, model, kind = config.data, config.model, config.initialization
        seed, networks = config.seed, config.networks or 1
    else:
        return ""
    trained = counted(networks, f"{network_name(model)} network")
    kind = initialization_name(kind)
    return f"{data_name(data)}, {trained} per outer step, {kind} initialization, seed {seed}."


def each_text(texts: Sequence[str], names: Sequence[str]) -> str:
    """One text if all are alike, otherwise each with its runs."""
    if len(set(texts)) == 1:
        return texts[0]
    bare = [text.rstrip(".") for text in texts]
    who = {
        text: ", ".join(n for n, t in zip(names, bare, strict=True) if t == text) for text in bare
    }
    return "; ".join(f"{name}: {text}" for text, name in who.items()) + "."
