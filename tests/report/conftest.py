"""A real run with its page, and a real browser to open it in."""

import json
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from ..cli.helpers import run as command

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
RUN = (
    *("distill", "--data", "digits", "--model", "linear", "--steps", "2", "--epochs", "2"),
    *("--iterations", "50", "--networks", "2", "--test-networks", "3", "--batch-size", "64"),
    *("--learning-rate", "0.1", "--threads", "1", "--processes", "1", "--quiet"),
)


@pytest.fixture(scope="session")
def digits_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run on real digits, measured."""
    folder = tmp_path_factory.mktemp("runs") / "digits"
    assert command(*RUN, "--run", str(folder)) == 0
    assert command("report", str(folder), "--networks", "2", "--quiet") == 0
    return folder


class Browser:
    """Chromium, with what its console says and what it asks a network for."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, page: Path, width: int = 1200) -> None:
        """Opens a file as a user does, on a screen of some width."""
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.get(page.resolve().as_uri())

    def script(self, text: str) -> Any:
        """What a piece of JavaScript returns."""
        return self.driver.execute_script(f"return {text}")

    def find(self, selector: str) -> Any:
        """The first element of a CSS selector."""
        return self.driver.find_element("css selector", selector)

    def press(self, key: str, code: str, number: int) -> None:
        """Presses and releases a key, wherever the focus is."""
        said = {"key": key, "code": code, "windowsVirtualKeyCode": number}
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            event = {"type": kind, **said, **(text if kind == "keyDown" else {})}
            self.driver.execute_cdp_cmd("Input.dispatchKeyEvent", event)

    def console(self) -> list[dict[str, Any]]:
        """What the console has said since the page was opened."""
        return self.driver.get_log("browser")

    def seconds(self, page: Path) -> float:
        """Opens a page, and returns how long the browser says that it took to load all of it."""
        self.driver.get("about:blank")
        self.open(page)
        loaded = "performance.getEntriesByType('navigation')[0].loadEventEnd"
        return self.script(loaded) / 1000

    def requests(self) -> list[str]:
        """The addresses that were asked for, besides the file itself and data in it."""
        log = self.driver.get_log("performance")
        events = [json.loads(one["message"])["message"] for one in log]
        sent = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
        urls = [one["request"]["url"] for one in sent if one["documentURL"].startswith("file:")]
        return [url for url in urls if not url.startswith(("file:", "data:"))]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Generator[Browser]:
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium (extra test)")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    chromedriver = shutil.which("chromedriver")
    if not chromium or not chromedriver:
        pytest.skip("needs Chromium: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(chromedriver)
    with webdriver.Chrome(options=options, service=service) as driver:
        driver.set_script_timeout(30)
        yield Browser(driver)
