"""The one place that loads drafters: embedded, own format, published checkpoints, the hub, draft models, n-grams."""

from __future__ import annotations

import re
from pathlib import Path

from gumiho_decoder.drafters.eagle.drafter import EagleDrafter, EagleModel
from gumiho_decoder.drafters.files.fingerprint import fingerprint
from gumiho_decoder.drafters.files.own_format import CONFIG_BYTES
from gumiho_decoder.drafters.growing.drafter import TreeDrafter
from gumiho_decoder.drafters.growing.heads import placed
from gumiho_decoder.drafters.gumiho.drafter import GumihoDrafter
from gumiho_decoder.drafters.gumiho.model import GumihoModel
from gumiho_decoder.drafters.hydra.drafter import HydraDrafter
from gumiho_decoder.drafters.hydra.model import HydraModel
from gumiho_decoder.drafters.medusa import MedusaDrafter, MedusaModel
from gumiho_decoder.drafters.published import FILES, load_published
from gumiho_decoder.embedded import embedded
from gumiho_decoder.target import Target, check_tree_attention, load_target
from gumiho_theory import InputError
from gumiho_theory.files import read_json

_DRAFTERS = {
    "gumiho": (GumihoModel, GumihoDrafter),
    "eagle": (EagleModel, EagleDrafter),
    "medusa": (MedusaModel, MedusaDrafter),
    "hydra": (HydraModel, HydraDrafter),
}
_WANTED = "tiny:gumiho, a drafter's folder or hub id, draft-model:TARGET, or ngram"


def load_drafter(name: str, target: Target, *, serial_steps: int | None = None) -> TreeDrafter:
    """Load a drafter onto its target's device, in its dtype.

    Its `fingerprint` is the SHA-256 of the weights as they are in float32, whatever the run's dtype and device; of an
    n-gram drafter, which has none, that of its name.

    Parameters
    ----------
    name : str
        `tiny:gumiho`, `tiny:eagle`, … (embedded: see the model card), `ngram`, `draft-model:T` (T as for
        `load_target`), a folder in the own format or in a published one, or a hub id.
    target : Target
    serial_steps : int, optional
        Of a published Gumiho checkpoint, which does not tell it; 2 unless given.

    Raises
    ------
    InputError
        Nothing loadable there, or it does not fit the target.
    """
    place = f"drafter {name!r}"
    if not name:
        raise InputError("drafter", "no name", _WANTED)
    if serial_steps is not None and (name == "ngram" or name.startswith(("tiny:", "draft-model:"))):
        raise _not_asked(place, serial_steps)
    if name == "ngram":
        from gumiho_decoder.drafters.ngram import NgramDrafter

        return NgramDrafter(target)
    if name.startswith("draft-model:"):
        return _draft_model(name, name.removeprefix("draft-model:"), target)
    if name.startswith("tiny:"):
        there = {f"tiny:{path.parent.name}": path.parent for path in embedded("").glob("*/config.json")}
        there.pop("tiny:target")
        if name not in there:
            raise InputError(place, "no such embedded drafter", ", ".join(sorted(there)))
        folder = there[name]
        if name == "tiny:small":
            return _draft_model(name, str(folder), target)
    else:
        folder = _folder(name)
    return _from_folder(folder, name, target, serial_steps)


def _from_folder(folder: Path, name: str, target: Target, serial_steps: int | None) -> TreeDrafter:
    path = folder / "config.json"
    method = read_json(path, CONFIG_BYTES).get("method") if path.is_file() else None
    if method is None:
        model = load_published(folder, target, name, serial_steps)
        if serial_steps is not None and not isinstance(model, GumihoModel):
            raise _not_asked(f"drafter {name!r}", serial_steps)
    elif isinstance(method, str) and method in _DRAFTERS:
        if serial_steps is not None:
            raise _not_asked(f"drafter {name!r}", serial_steps)
        model = _DRAFTERS[method][0].from_pretrained(folder)
    else:
        raise InputError(f"{path}, method", repr(method), ", ".join(_DRAFTERS))
    kinds = dict(_DRAFTERS.values())
    taken = fingerprint(model)  # before the weights take the run's dtype
    drafter = kinds[type(model)](model, target, name)
    drafter.fingerprint = taken
    for tensor, weight in drafter.model.named_parameters():
        if not weight.isfinite().all():
            dtype = str(target.dtype).removeprefix("torch.")
            raise InputError(
                f"drafter {name!r}, tensor {tensor}", f"weights that {dtype} cannot hold", "another --dtype"
            )
    return drafter


def _draft_model(name: str, of: str, target: Target) -> TreeDrafter:
    from gumiho_decoder.drafters.draft_model.drafter import DraftModelDrafter

    try:
        draft = load_target(of, "cpu", "float32")
        taken = fingerprint(draft.model)
        placed(draft.model, target.head_device, target.dtype)
        check_tree_attention(draft)
    except InputError as error:
        raise error.within(f"drafter {name!r}") from None
    drafter = DraftModelDrafter(draft, target, name)
    drafter.fingerprint = taken
    return drafter


def _folder(name: str) -> Path:
    """Return a folder that is there, or else what the hub has under this name."""
    place = f"drafter {name!r}"
    folder = Path(name)
    if folder.is_dir():
        return folder
    if not re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", name) or folder.exists():
        raise InputError(place, "a file" if folder.exists() else "no such folder", _WANTED)
    import huggingface_hub

    try:
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=list(FILES)))
    except Exception as error:  # no network, no such repository, no access, a full disk: its errors have no common base
        raise InputError(place, f"no such folder, and from the hub {type(error).__name__}: {error}", _WANTED) from error


def _not_asked(place: str, serial_steps: int) -> InputError:
    return InputError(
        f"{place}, serial_steps", serial_steps, "nothing: only a published Gumiho checkpoint leaves it open"
    )
