"""The accuracies of docs/results: taken from finished runs into one JSON file, and into the pages.

    python -m benchmarks.accuracies add ROW RUN … --command "datadistill distill … --seed {seed}"
    python -m benchmarks.accuracies page    # writes the tables into docs/results
    python -m benchmarks.accuracies publish NAME RUN --command "datadistill distill …"

A row is an experiment as a page names it, such as ``mnist-fixed-10``. Of every run the file holds
the command, the figure on the test data, the one on held-out training data, and what it took. A run
that is already there is replaced. ``measured`` has the figures of pages whose runs were not added,
``published`` those of other methods, and ``summary`` and ``readme`` say which figures the tables of
docs/results/README.md and README.md show; tests compare all of them with the pages.
``publish`` puts the artefact of a run, its picture and a card into the package.
"""

import argparse
import json
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datadistill.artefact import load
from datadistill.artefact.published import FOLDER
from datadistill.runs.store.folder import RunFolder
from datadistill.runs.store.metrics import read_metrics
from datadistill.runs.store.yaml_files import read_config

DOCS = Path(__file__).parents[1] / "docs" / "results"
RESULTS = DOCS / "results.json"
PLACE = re.compile(r"(<!-- accuracies: ([\w.-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

CARD = """# {name}

![Distilled images]({name}.png)

{what}, for `{network}` with {initialization} weights; {stored:,} bytes of images, labels and rates.

Accuracy: {claim}

```python
import datadistill as dd

distilled = dd.load("{name}")
network = distilled.train()  # a plain nn.Module, trained on these images alone
```

```sh
datadistill train {name}
datadistill evaluate {name} --data-dir DIR
datadistill verify {name} --data-dir DIR
```

Made by:

```sh
{command} --data-dir DIR
```
"""

Measured = Mapping[str, Any]
"""One run: its command, its figures in percent, and what it took."""


def measured(run: Path, command: str) -> dict[str, Any]:
    """What a finished run found, and the command that makes it, with its seed in it."""
    folder = RunFolder(run)
    config, section = read_config(folder.config), folder.read_results()["run"]
    claim, rows = section["distilled"]["claim"], list(read_metrics(folder.metrics))
    if claim["split"] != "test":
        raise SystemExit(f"{run} was not tested on test data.")
    kept = section["distilled"]["outer_step"]
    states = (section.get(name) for name in ("best", "last"))
    claims = (one["claim"] for one in states if one and one["outer_step"] == kept)
    held_out = next((own["mean"] for own in claims if own["split"] == "validation"), None)
    seed = config.init_seed if config.initialization.startswith("fixed") else config.seed
    return {
        "command": command.format(seed=seed),
        "seed": seed,
        "data": claim["data"],
        "examples": claim["examples"],
        "networks": claim["networks"],
        "mean": 100 * claim["mean"],
        "std": 100 * claim["std"],
        "held_out": None if held_out is None else 100 * held_out,
        "outer_steps": config.iterations,
        "kept": kept,
        "minutes": sum(row.seconds for row in rows) / 60,
    }


def add(row: str, runs: Sequence[Path], command: str, path: Path = RESULTS) -> None:
    """Puts runs into the file."""
    content = read(path)
    known = {one["command"]: one for one in content["rows"].get(row, [])}
    for run in runs:
        found = measured(run, command)
        known[found["command"]] = found
    content["rows"][row] = sorted(known.values(), key=lambda one: one["seed"])
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def read(path: Path = RESULTS) -> dict[str, Any]:
    """The file."""
    return json.loads(path.read_text("utf-8"))


def table(runs: Sequence[Measured]) -> str:
    """The runs of a row as Markdown, with the mean over them."""
    one = all(run["networks"] == 1 for run in runs)
    which = "fixed network (`--init-seed`)" if one else "run (`--seed`)"
    lines = [
        f"| {which} | held-out training data, % | test data, % | networks | outer steps "
        "| minutes |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for run in runs:
        figure = f"{run['mean']:.2f}" + ("" if one else f" ± {run['std']:.2f}")
        held_out = "" if run["held_out"] is None else f"{run['held_out']:.2f}"
        lines.append(
            f"| {run['seed']} | {held_out} | {figure} | {run['networks']} "
            f"| {run['outer_steps']:,} | {run['minutes']:.0f} |"
        )
    if len(runs) > 1:
        total = sum(run["networks"] for run in runs)
        lines.append(f"| all | | **{overall(runs)}** | {total} | | |")
    examples = {f"{run['examples']:,} test images of `{run['data']}`" for run in runs}
    commands = dict.fromkeys(run["command"] + _folder(run["data"]) for run in runs)
    lines += ["", f"{', '.join(sorted(examples))}:", "", "```sh", *commands, "```", ""]
    return "\n".join(lines)


def _folder(data: str) -> str:
    """Where the files of a data set are, as a flag; digits need none."""
    return "" if data == "digits" else " --data-dir DIR"


def overall(runs: Sequence[Measured]) -> str:
    """The mean ± standard deviation over all networks of all runs."""
    mean, std = pooled(runs)
    return f"{mean:.2f} ± {std:.2f}"


def pooled(runs: Sequence[Measured]) -> tuple[float, float]:
    """Mean and standard deviation over the networks of several runs, as if they were one."""
    total = sum(run["networks"] for run in runs)
    mean = sum(run["networks"] * run["mean"] for run in runs) / total
    if total == len(runs):
        return mean, statistics.stdev(run["mean"] for run in runs) if total > 1 else 0.0
    squares = sum(
        (run["networks"] - 1) * run["std"] ** 2 + run["networks"] * (run["mean"] - mean) ** 2
        for run in runs
    )
    return mean, math.sqrt(squares / (total - 1))


def with_tables(page: str, content: Mapping[str, Any]) -> str:
    """A page with the tables of its rows between its markers."""

    def fill(place: re.Match[str]) -> str:
        begin, row, end = place.groups()
        runs = content["rows"].get(row)
        return begin + (table(runs) if runs else "Not run yet.\n") + end

    return PLACE.sub(fill, page)


def publish(name: str, run: Path, command: str) -> None:
    """Puts the artefact of a run into the package, with its picture and a card."""
    folder, distilled = RunFolder(run), load(run)
    FOLDER.mkdir(exist_ok=True)
    for source in (folder.distilled, folder.picture):
        (FOLDER / f"{name}{source.suffix}").write_bytes(source.read_bytes())
    images = distilled.inputs.shape[0] * distilled.inputs.shape[1]
    card = CARD.format(
        name=name,
        what=f"{images} distilled images of {distilled.header.data}",
        network=distilled.header.architecture.name,
        initialization=distilled.header.initialization.name,
        stored=distilled.stored_bytes,
        claim=distilled.claim,
        command=command,
    )
    (FOLDER / f"{name}.md").write_text(card, "utf-8")


def main() -> None:
    """Adds runs, publishes one, or writes the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["add", "publish", "page"])
    parser.add_argument("row", nargs="?")
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--command")
    chosen = parser.parse_args()
    if chosen.what == "add":
        add(chosen.row, chosen.runs, chosen.command)
    if chosen.what == "publish":
        publish(chosen.row, chosen.runs[0], chosen.command)
    for page in DOCS.glob("*.md"):
        page.write_text(with_tables(page.read_text("utf-8"), read()), "utf-8")


if __name__ == "__main__":
    main()
