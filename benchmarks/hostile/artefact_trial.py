"""One hostile artefact: written, loaded, shown, used in every way, exported and drawn."""

import ast
import math
import signal
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from safetensors import SafetensorError

import datadistill as dd
from datadistill.artefact.container import write_container
from datadistill.errors import DataDistillError
from datadistill.report import draw

from .artefact_bases import EXAMPLES, Base, bases
from .artefact_changes import hostile
from .counts import Counts

SECONDS = 10.0
BYTES = 2**30
OPERATIONS = 10**9
UPDATES = 500
"""More than these are not trained: the artefact says beforehand that it takes longer."""
DRAWN = 100
"""Every so manieth artefact is drawn, which takes long."""
NETWORKS = 8
FEW = 10
"""Images that are exported one by one."""
UNWRITABLE = (ValueError, KeyError, RuntimeError, RecursionError, SafetensorError)
"""What safetensors raises of an artefact for which there is no file, such as a too large header."""


class BrokenError(Exception):
    """A promise is broken: the name of the count, and how."""


class Trial:
    """Tries hostile artefacts, one after the other, in this process.

    Args:
        seed: Which.
        picture: Whether some are drawn, which takes long.

    Attributes:
        seconds: How long the use of an artefact may take.
    """

    def __init__(self, seed: int, *, picture: bool = True) -> None:
        self._seed, self._bases, self._picture = seed, bases(), picture
        signal.signal(signal.SIGPROF, _too_long)
        self.seconds = 0.0  # no limit
        for base in self._bases:  # what is imported or compiled once is no artefact's fault
            self._outcome(dict(base.tensors), dict(base.header), base, picture=False)
        self.seconds = SECONDS

    def __call__(self, number: int) -> Counts:
        """Makes and tries artefact ``number``."""
        counts = Counts(tried=1)
        tensors, header, base = hostile(self._bases, self._seed, number)
        picture = self._picture and number % DRAWN == 0
        before = _memory("VmRSS")
        try:
            outcome, how = self._outcome(tensors, header, base, picture=picture), ""
        except BrokenError as error:
            outcome, how = error.args
        except BaseException as error:
            outcome, how = "untyped", f"{type(error).__name__}: {error}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        if outcome != "unwritten" and (grown := _memory("VmHWM") - before) > BYTES:
            outcome, how = "over_memory", f"{grown / 2**20:.0f} MB {how}"
        setattr(counts, outcome, 1)
        if how:
            counts.details.append(f"seed {self._seed}, number {number}: {outcome}: {how[:300]}")
        return counts

    def _outcome(
        self, tensors: dict[str, torch.Tensor], header: dict[str, Any], base: Base, *, picture: bool
    ) -> str:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "hostile.safetensors")
            try:
                # Copied, since safetensors writes no two tensors that share memory.
                copies = {name: tensor.clone() for name, tensor in tensors.items()}
                write_container(path, copies, header)
            except UNWRITABLE:
                return "unwritten"
            # To write it is the work of who sends it: time and memory are those of using it.
            Path("/proc/self/clear_refs").write_text("5")  # forgets the largest size so far
            signal.setitimer(signal.ITIMER_PROF, self.seconds)
            try:
                distilled = dd.load(path)
            except DataDistillError:
                return "refused"
            refused = _used(distilled, base)
            if picture:
                refused |= _drawn(distilled, Path(folder, "picture.png"))
        return "refused" if refused else "used"


def _used(distilled: dd.DistilledData, base: Base) -> bool:
    """Uses loaded data in every way; returns whether any was refused."""
    assert str(repr(distilled))
    if not torch.isfinite(distilled.images).all():
        raise BrokenError("not_finite", "images")
    if distilled.cost and distilled.cost.operations > OPERATIONS:
        return False
    if distilled.learning_rates.numel() > UPDATES:
        return False
    refused = False
    for use in (_trained, _evaluated, _verified, _exported):
        try:
            use(distilled, base)
        except DataDistillError:
            refused = True
    return refused


def _trained(distilled: dd.DistilledData, base: Base) -> None:
    module = distilled.train(base.module() if base.module else None, device="cpu")
    if not all(torch.isfinite(weight).all() for weight in module.parameters()):
        raise BrokenError("not_finite", "trained weights")


def _evaluated(distilled: dd.DistilledData, base: Base) -> None:
    module = base.module() if base.module else None
    found = dd.evaluate(distilled, _data(distilled, EXAMPLES), networks=1, module=module)
    said = "diverged" in str(found) or distilled.header.objective["name"] == "own-loss"
    if not all(map(math.isfinite, (*found.values, *found.losses))) and not said:
        raise BrokenError("not_finite", f"{found}, loss {found.loss}")


def _verified(distilled: dd.DistilledData, base: Base) -> None:
    claim, module = distilled.claim, base.module() if base.module else None
    examples = min(claim.examples, EXAMPLES) if claim else EXAMPLES
    result = dd.verify(distilled, _data(distilled, examples), module=module, most_networks=NETWORKS)
    assert str(result)
    far = max(0.01, 3 / examples) if result.claim.is_accuracy else 0.01 * abs(result.claim.mean)
    worse = result.claim.mean - result.found.mean
    if result.holds and (worse if result.higher_is_better else -worse) > far + 1e-9:
        raise BrokenError("silent", f"{result}")


def _exported(distilled: dd.DistilledData, _: Base) -> None:
    pictures = ("png", "folder") if len(distilled) < FEW else ()
    for form in ("npz", "dd-ranking", *pictures, "script"):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder, "exported")
            dd.export(distilled, place, form)
            if {path.name for path in Path(folder).iterdir()} != {"exported"}:
                raise BrokenError("silent", f"{form} wrote elsewhere")
            if form == "script":
                _check_script((place / "train.py").read_text())


def _check_script(text: str) -> None:
    """Nothing of the artefact may become code: settings and arguments are plain values."""
    settings, *_, last = ast.parse(text).body[1:]
    assert isinstance(settings, ast.Assign)
    ast.literal_eval(settings.value)
    (made,) = (node.body for node in ast.walk(last) if isinstance(node, ast.Lambda))
    assert isinstance(made, ast.Call)
    assert not made.args
    for argument in made.keywords:
        ast.literal_eval(argument.value)


def _drawn(distilled: dd.DistilledData, path: Path) -> bool:
    try:
        draw(distilled, path)
    except DataDistillError:
        return True
    return False


def _data(distilled: dd.DistilledData, examples: int) -> dd.LabelledData:
    """A few real examples of the shape that was distilled."""
    shape, labels = distilled.inputs.shape[2:], distilled.labels
    inputs = torch.linspace(-1, 1, examples * shape.numel()).reshape(examples, *shape)
    targets = torch.arange(examples) % 2
    if distilled.header.objective["name"] == "regression":
        targets = torch.zeros(examples, *labels.shape[2:])
    return dd.LabelledData(inputs, targets, name="digits", split="test")


def _too_long(_: int, __: FrameType | None) -> None:
    raise BrokenError("over_time", f"more than {SECONDS:.0f} s")


def _memory(what: str) -> int:
    """Bytes that this process has in memory (VmRSS), or had at most (VmHWM)."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition(f"{what}:")[2].split()[0])
