"""Distilled data as a notebook shows them: the images of the first steps, labels and rates."""

from markupsafe import Markup
from torch import Tensor

from ..markup import table, text
from ..pixels import as_images, data_uri, pictures_of, smaller
from .header import Header

STEPS, IMAGES, RATES = 10, 20, 5
"""How much is shown."""
BYTES = 2**18
SIDE = 44  # pixels


def as_html(header: Header, images: Tensor, labels: Tensor, learning_rates: Tensor) -> str:
    """A table with a row per step.

    Args:
        header: What the data are for.
        images: (steps, images, …) as pixels.
        labels: Their labels.
        learning_rates: One for every (epoch, step).
    """
    shown = smaller(as_images(images.detach().cpu())[:STEPS, :IMAGES], BYTES)
    names = [_name(header, label) for label in labels[0, :IMAGES]]
    rows: list[list[object]] = []
    for step, pictures in enumerate(pictures_of(shown)):
        rates = [f"{rate:.3g}" for rate in learning_rates[:RATES, step].tolist()]
        more = " …" if len(learning_rates) > RATES else ""
        cells = [
            Markup('<img src="{}" alt="{}" style="{}">').format(
                data_uri(picture),
                text(f"distilled image for {_name(header, label)}"),
                f"width:{SIDE}px;image-rendering:pixelated",
            )
            for picture, label in zip(pictures, labels[step], strict=False)
        ]
        rows.append([f"step {step + 1}, η {', '.join(rates)}{more}", *cells])
    schedule = header.schedule
    left = schedule.steps * schedule.images - sum(len(row) - 1 for row in rows)
    rest = f" {left} more are not shown." if left else ""
    return Markup("<div><p>{}</p>{}</div>").format(
        text(f"{schedule.steps * schedule.images} distilled images of {header}.{rest}"),
        table(rows, ["", *names]),
    )


def _name(header: Header, label: Tensor) -> str:
    if label.is_floating_point() and label.numel() == 1:
        return f"{float(label):.3g}"
    number = int(label.argmax() if label.is_floating_point() else label)
    names = header.class_names or []
    return names[number] if number < len(names) else str(number)
