"""A target and a drafter that fits it, by name; and what every request to measure them says."""

from __future__ import annotations

from dataclasses import dataclass

from gumiho_decoder.draft import Drafter
from gumiho_decoder.drafters.load import load_drafter
from gumiho_decoder.target import Target, check_device, load_target


def load_pair(target: str, drafter: str, dtype: str = "float32", device: str = "cpu") -> tuple[Target, Drafter]:
    """Load a target and a drafter that fits it.

    Raises InputError: Unknown dtype or device, nothing loadable, or a drafter that does not fit.
    """
    check_device(device, dtype)
    loaded = load_target(target, device, dtype)
    return loaded, load_drafter(drafter, loaded)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What every request to decode prompts says.

    Attributes
    ----------
    target : str
        As `load_target` takes it.
    limit : int or None
        Only the first so many prompts of a file.
    dtype, device : str
        Of the models.
    """

    target: str = "tiny"
    limit: int | None = None
    dtype: str = "float32"
    device: str = "cpu"
