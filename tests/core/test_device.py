import pytest
import torch

from datadistill.core.device import available_devices, resolve_device, resolve_dtype
from datadistill.errors import ConfigError


def test_auto_is_the_first_device_there_is() -> None:
    assert resolve_device("auto").type == available_devices()[0]
    assert available_devices()[-1] == "cpu"


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="no device called 'gpu'"):
        resolve_device("gpu")
    missing = {"cuda", "mps"} - set(available_devices())
    for name in missing:
        with pytest.raises(ConfigError, match="not available on this machine"):
            resolve_device(name)


def test_dtypes_by_name() -> None:
    assert resolve_dtype("float64") == torch.float64
    for name in ("int64", "float65", "nn"):
        with pytest.raises(ConfigError, match="not a floating-point type"):
            resolve_dtype(name)
