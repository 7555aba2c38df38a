"""Named accelerators: memory bandwidth, arithmetic rate and memory, as their makers' data sheets give them."""

from __future__ import annotations

from dataclasses import dataclass

from gumiho_theory import InputError


@dataclass(frozen=True)
class Accelerator:
    """One device, at the peaks of its data sheet.

    Parameters
    ----------
    name
        Name and form.
    bandwidth
        Memory bandwidth, bytes a second.
    flops
        Dense 16-bit matrix arithmetic (no sparsity), operations a second.
    memory
        Bytes.
    source
        Data sheet.
    """

    name: str
    bandwidth: float
    flops: float
    memory: float
    source: str


ACCELERATORS = {
    "MI250": Accelerator(
        # Two dies on one module, which software sees as two devices of half of everything.
        "AMD Instinct MI250",
        3276.8e9,
        362.1e12,
        128e9,
        "AMD Instinct MI200 Series Accelerator data sheet, 2021: both dies, peak FP16/BF16 matrix",
    ),
    "A100": Accelerator(
        "NVIDIA A100 80GB SXM",
        2039e9,
        312e12,
        80e9,
        "NVIDIA A100 Tensor Core GPU data sheet, 2021",
    ),
    "H100": Accelerator(
        "NVIDIA H100 SXM",
        3350e9,
        989.4e12,
        80e9,
        "NVIDIA H100 Tensor Core GPU data sheet, 2023: 1,979 TFLOPS with sparsity, half of that without",
    ),
    "H200": Accelerator(
        "NVIDIA H200 SXM",
        4800e9,
        989.4e12,
        141e9,
        "NVIDIA H200 Tensor Core GPU data sheet, 2024: 1,979 TFLOPS with sparsity, half of that without",
    ),
    "RTX 4090": Accelerator(
        "NVIDIA GeForce RTX 4090",
        1008e9,
        165.2e12,
        24e9,
        "NVIDIA Ada GPU Architecture whitepaper, 2022, appendix A: FP16 tensor rate with FP32 accumulate",
    ),
}


def accelerator(name: str) -> Accelerator:
    """Return an accelerator by its name, in any case and with or without spaces.

    Parameters
    ----------
    name
        A key of `ACCELERATORS`.

    Returns
    -------
    Accelerator
        Its figures.

    Raises
    ------
    InputError
        Another name.
    """

    def plain(text: str) -> str:
        return "".join(text.split()).replace("-", "").casefold()

    for key, value in ACCELERATORS.items():
        if plain(key) == plain(name):
            return value
    raise InputError("accelerator", repr(name), f"one of {', '.join(ACCELERATORS)}")
