"""The page in a real browser: what a reader sees and can do."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import datadistill as dd
from datadistill.runs.store.checkpoint import newest, write_checkpoint
from datadistill.runs.store.folder import RunFolder
from datadistill.runs.store.metrics import LearningRates, MetricsRow, logging_to
from datadistill.runs.store.snapshots import MOST, Snapshots

from .conftest import Browser

HOSTILE = (
    "<script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=\'owned\'">',
    "'); document.title='owned'; ('",
    "{{ 7 * 7 }}{% raw %}</script><script>document.title='owned'</script>",
    "Ein sehr langer Name " * 190,
    "日本語 ελληνικά עברית العربية 🐍",
    "\u202eturned\x1b[31m\x00",
    "&amp; <b>bold</b> $x^2$ \\ `",
)


def test_the_page_of_a_run_works_by_mouse_and_by_keyboard(
    browser: Browser, digits_run: Path
) -> None:
    browser.open(digits_run / "report.html")
    assert browser.find("h1").text == "digits"
    cells = browser.script("document.querySelectorAll('.cell').length")
    assert cells == 20  # two steps of ten classes
    assert browser.script(
        "[...document.querySelectorAll('main img')].every(i => i.naturalWidth > 0)"
    )
    assert browser.script("[...document.querySelectorAll('main img')].every(i => i.alt)")
    titles = browser.script("[...document.querySelectorAll('.chart h3')].map(h => h.textContent)")
    assert titles[:2] == ["Accuracy after every update", "Confusion matrix after all updates"]
    assert browser.script("document.querySelector('#curve .band') !== null")

    # By mouse: an image is enlarged, and closed again.
    browser.find(".cell:nth-child(4)").click()
    assert browser.script("document.querySelector('dialog').open")
    assert browser.find("#enlarged-title").text == "3"
    assert "step 1" in browser.find("dialog .detail").text
    assert browser.script("document.querySelector('dialog img').clientWidth") > 200
    browser.find("dialog .close").click()
    assert not browser.script("document.querySelector('dialog').open")

    # By keyboard: Enter opens, an arrow goes on, Escape closes and gives the focus back.
    browser.script("document.querySelector('.cell').focus()")
    browser.press("Enter", "Enter", 13)
    assert browser.find("#enlarged-title").text == "0"
    browser.press("ArrowRight", "ArrowRight", 39)
    assert browser.find("#enlarged-title").text == "1"
    browser.press("Escape", "Escape", 27)
    assert not browser.script("document.querySelector('dialog').open")
    assert browser.script("document.activeElement.title") == "1"

    # The slider shows other images at other outer steps.
    last = browser.script("document.querySelector('.frame').src")
    assert "outer step 50 of 50" in browser.find(".moment").text
    browser.script("document.querySelector('.film input').focus()")
    browser.press("Home", "Home", 36)
    assert "outer step 0 of 50" in browser.find(".moment").text
    assert browser.script("document.querySelector('.frame').src") != last
    browser.press("ArrowRight", "ArrowRight", 39)
    assert "outer step 2 of 50" in browser.find(".moment").text
    browser.find(".play").click()
    assert browser.find(".play").get_attribute("aria-label") == "Pause"
    browser.find(".play").click()

    browser.find(".copy").click()
    assert browser.find(".copy").text == "Copied"
    assert browser.console() == []
    assert browser.requests() == []


@pytest.mark.parametrize("width", [360, 1200])
def test_no_page_is_wider_than_its_screen(browser: Browser, digits_run: Path, width: int) -> None:
    browser.open(digits_run / "report.html", width)
    assert browser.script("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [360, 1200])
def test_runs_side_by_side_fit_the_screen_and_unfold(
    browser: Browser, digits_run: Path, tmp_path: Path, width: int
) -> None:
    page = dd.report([digits_run] * 2, output=tmp_path / "both.html", measured=False).path
    browser.open(page, width)
    assert browser.script("document.documentElement.scrollWidth") <= width
    assert not browser.script("document.getElementById('run-2').open")
    browser.script("document.querySelector('a[href=\"#run-2\"]').click()")
    assert browser.script("document.getElementById('run-2').open")
    assert browser.script("document.documentElement.scrollWidth") <= width
    browser.script("dispatchEvent(new Event('beforeprint'))")  # what is folded is printed
    assert browser.script("document.querySelectorAll('details:not([open])').length") == 0
    assert browser.script("document.querySelectorAll('#run-2 .moments img').length") == 4
    browser.script("dispatchEvent(new Event('afterprint'))")
    assert browser.script("document.querySelectorAll('.moments').length") == 0
    assert not browser.script("document.getElementById('run-1').open")
    assert browser.console() == []


def test_nothing_of_a_hostile_run_is_executed_or_breaks_the_page(
    browser: Browser, tmp_path: Path
) -> None:
    data = dd.LabelledData(
        torch.rand(64, 1, 6, 6), torch.arange(64) % 8, name=HOSTILE[1], class_names=HOSTILE
    )
    run = tmp_path / "a run <b onclick=alert(1)>'\" 名前 & ${x}"
    test = (data.inputs, data.labels)
    dd.distill(
        data, "linear", run=run, iterations=3, networks=1, batch_size=8, validation=0.2, test=test
    )
    made = dd.report(run, test=data, networks=1)
    browser.open(made.path)
    assert browser.driver.title.startswith("a run <b onclick=alert(1)>")
    shown = browser.script("[...document.querySelectorAll('.cell span')].map(s => s.textContent)")
    assert shown[0] == HOSTILE[0]
    assert shown[5] == HOSTILE[5]
    assert shown[6] == "\\u202eturned\\u001b[31m\\u0000"
    browser.find(".cell").click()
    assert browser.find("#enlarged-title").text == HOSTILE[0]
    assert browser.script("document.querySelectorAll('script').length") == 2  # ours, and frames
    assert browser.script("document.querySelectorAll('main b').length") == 0
    assert browser.script("document.documentElement.scrollWidth") <= 1200
    assert "owned" not in browser.driver.title
    assert browser.console() == []
    assert browser.requests() == []


def _long_run(folder: Path) -> None:
    """A run of 200 classes whose log has 10,000 rows and whose checkpoint all snapshots."""
    data = torch.rand(400, 3, 32, 32), torch.arange(400) % 200
    dd.distill(data, "linear", run=folder, iterations=1, networks=1, steps=10, validation=0.0)
    place = RunFolder(folder)
    place.metrics.unlink()
    rates = LearningRates(min=0.01, mean=0.02, max=0.03)
    with logging_to(place.metrics, 0) as log:
        for step in range(1, 10_001):
            log.append(
                MetricsRow(
                    outer_step=step,
                    loss=1 + 1 / step,
                    gradient_norm=1.0,
                    outer_lr=0.01,
                    learning_rates=rates,
                    rejected=0,
                    seconds=0.1,
                )
            )
    checkpoint, _ = newest(place.checkpoints)
    shape = (MOST + 1, *checkpoint.state.snapshots.pictures.shape[1:])
    noise = torch.randint(0, 256, shape, dtype=torch.uint8)
    steps = tuple(range(0, 250 * MOST + 1, 250))
    distiller = replace(checkpoint.state.distiller, outer_step=10_000)
    state = replace(checkpoint.state, distiller=distiller, snapshots=Snapshots(steps, noise))
    write_checkpoint(place.checkpoints, replace(checkpoint, state=state))


def test_a_page_of_200_classes_and_10_000_outer_steps_is_small_and_quick(
    browser: Browser, tmp_path: Path
) -> None:
    """Against a bare page of the same images, opened alternately: a busy machine slows both."""
    _long_run(tmp_path / "long")
    test = torch.rand(400, 3, 32, 32), torch.arange(400) % 200
    page = dd.report(tmp_path / "long", test=test, networks=1).path
    assert page.stat().st_size < 15e6
    images = re.findall(r"data:image/\w+;base64,[\w+/=]+", page.read_text())
    assert len(images) > 2000
    bare = tmp_path / "bare.html"
    bare.write_text("".join(f'<img src="{one}">' for one in images))
    times = [(browser.seconds(bare), browser.seconds(page)) for _ in range(2)]
    assert browser.script("document.querySelectorAll('.cell').length") == 2000
    assert browser.console() == []
    least, ours = (min(one) for one in zip(*times, strict=True))
    assert ours < 5 * least, times
    if os.getloadavg()[0] <= (os.cpu_count() or 1):  # seconds mean something
        assert ours < 3, times
