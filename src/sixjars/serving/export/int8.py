"""The step of a decoder with matrices of 8 bits.

The encoder keeps its 32 bits: its recurrence would not be quantised, and convolutions would be slower. Inputs and
weights are unsigned, each output with a scale of its own: with signs, sums of two products overflow on some CPUs.
"""

import logging
from pathlib import Path

from sixjars.errors import RunError


def quantise(folder: Path) -> None:
    """Replace the step of an exported run."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    step, whole = folder / "step.onnx", folder / "step32.onnx"
    if not step.is_file():
        raise RunError("this run chooses a label and has no step to quantise; leave --precision out.")
    step.rename(whole)
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # it advises to preprocess what torch has optimised already
    try:
        quantize_dynamic(whole, step, weight_type=QuantType.QUInt8, per_channel=True)
    finally:
        logging.disable(before)
    whole.unlink()
