"""Devices and dtypes by name."""

from typing import get_args

import torch

from ..errors import ConfigError
from .names import DeviceName, DtypeName

DeviceLike = str | torch.device
"""A device, or what :func:`resolve_device` knows by name."""


def available_devices() -> list[str]:
    """Returns the kinds of device this machine has, fastest first."""
    cuda = ["cuda"] if torch.cuda.is_available() else []
    mps = ["mps"] if torch.backends.mps.is_available() else []
    return [*cuda, *mps, "cpu"]


def resolve_device(name: DeviceLike) -> torch.device:
    """Turns ``auto``, ``cpu``, ``cuda`` (or ``cuda:1``) or ``mps`` into a device that is there."""
    if isinstance(name, str) and name == "auto":
        return torch.device(available_devices()[0])
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError, ValueError):
        raise ConfigError(
            f"There is no device called {name!r}.",
            f"Choose one of: {', '.join(get_args(DeviceName))}.",
        ) from None
    there = available_devices()
    if device.type not in there or (
        device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count()
    ):
        raise ConfigError(
            f"The device {str(device)!r} is not available on this machine.",
            f"Choose auto, or one that is: {', '.join(there)}.",
        )
    return device


def resolve_dtype(name: str | torch.dtype) -> torch.dtype:
    """Turns the name of a floating-point type into the type."""
    dtype: object = getattr(torch, name, None) if isinstance(name, str) else name
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise ConfigError(
            f"{name!r} is not a floating-point type.",
            f"Choose one of: {', '.join(get_args(DtypeName))}.",
        )
    return dtype
