"""How to use an artefact and to repeat a run: commands that work as they are shown."""

from ..artefact import DistilledData
from ..core.seam import parse
from ..errors import DataDistillError
from ..hints import command, flag
from ..runs.experiment import check_findable, names_code, repeat_flags
from .story import Story


def needed(distilled: DistilledData) -> list[str]:
    """The words that commands need for an artefact: the user's own code, which no file names."""
    given, words = distilled.header.configuration, list[str]()
    for setting in ("model", "objective", "update_rule", "initialization"):
        if ":" in (given.get(setting) or ""):
            words += [flag(setting), parse(given[setting])[0]]
            if setting == "model" and given["model_args"]:
                words += ["--model-args", *given["model_args"]]
    return words


def commands(story: Story) -> str:
    """What can be done with the artefact on the command line."""
    words = needed(story.distilled) if story.distilled else []
    config, data = story.config, list[str]()
    if config and names_code("data", config.data):
        data = ["--data", parse(config.data)[0]]
    measuring = [command(verb, story.path, *data, *words) for verb in ("evaluate", "verify")]
    return "\n".join([command("train", story.path, *words), *measuring])


def code_names(story: Story) -> dict[str, str]:
    """What Python code that trains a network on the distilled data names."""
    own = story.distilled is not None and not story.distilled.header.architecture.built_in
    return {"artefact": repr(str(story.path)), "network": "YourNetwork()" if own else ""}


def again(story: Story) -> str:
    """The command that makes such a run again; empty for an artefact alone."""
    config = story.config
    if config is None:
        return ""
    file = story.path / "config.yaml"
    try:
        check_findable(config, str(file))
    except DataDistillError:
        return "# The data were in memory: make the same dd.distill(…) call with another run=."
    return command("distill", file, *repeat_flags(config))
