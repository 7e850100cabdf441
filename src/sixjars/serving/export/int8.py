"""The step of a decoder with matrices of 8 bits.

The encoder keeps its 32 bits: its recurrence would not be quantised, and convolutions would be
slower. Inputs and weights are unsigned, each output with a scale of its own: with signs, sums of
two products overflow on some CPUs.
"""

import logging
from pathlib import Path
from typing import Any

from sixjars_runtime.errors import RunError
from sixjars_runtime.exported.settings import STEP, WHOLE


def quantise(folder: Path) -> None:
    """Replace the step of an exported run, alone or as the body of a loop."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    step = next((path for name in (WHOLE, STEP) if (path := folder / name).is_file()), None)
    if step is None:
        raise RunError(
            "this run chooses a label and has no step to quantise; leave --precision out."
        )
    before = folder / "before.onnx"
    step.rename(before)
    options: dict[str, Any] = {"weight_type": QuantType.QUInt8, "per_channel": True}
    if step.name == WHOLE:
        around = [node.name for node in onnx.load(before).graph.node]
        around += [f"{name}_MatMul" for name in around]  # the name of what replaces a Gemm
        options |= {"nodes_to_exclude": around, "extra_options": {"EnableSubgraph": True}}
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)  # it advises to preprocess what torch has optimised already
    try:
        quantize_dynamic(before, step, **options)
    finally:
        logging.disable(disabled)
    before.unlink()
