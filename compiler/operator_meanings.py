"""What operators do with values: keep them, compare them, index with them, take them as a shape. Tables only."""

from __future__ import annotations

_KEEPS_LAYOUT = frozenset(["Cast", "CastLike", "Identity", "Dropout", "ReduceMax", "ReduceMin", "Trilu"])
_MOVES_VALUES = frozenset(
    ["Reshape", "Unsqueeze", "Squeeze", "Transpose", "Slice", "Expand", "Tile", "Flatten", "Gather"]
)
_MOVES_MORE = frozenset(["GatherElements", "GatherND", "Split", "Pad", "Compress", "ReverseSequence", "SpaceToDepth"])
KEEPS_FIRST = _KEEPS_LAYOUT | _MOVES_VALUES | _MOVES_MORE | {"DepthToSpace"}
"""Outputs hold values of the first operand, maybe elsewhere."""
KEEPS_ALL = frozenset(["Concat", "Where", "Max", "Min"])
"""Outputs hold values of any operand."""
COMPARES = frozenset(["Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"])
"""They make a difference between values that lie close together."""
LOGIC = frozenset(["And", "Or", "Xor", "Not"])
INDEX_OPERANDS: dict[str, tuple[tuple[int, int, str | int], ...]] = {
    "Gather": ((1, 0, "axis"),),
    "GatherElements": ((1, 0, "axis"),),
    "ScatterElements": ((1, 0, "axis"),),
    "Scatter": ((1, 0, "axis"),),
    "GatherBlockQuantized": ((1, 0, "gather_axis"),),
    "EmbedLayerNormalization": ((0, 2, 0), (1, 4, 0)),
    "NegativeLogLikelihoodLoss": ((1, 0, 1),),
    "SoftmaxCrossEntropyLoss": ((1, 0, 1),),
}
"""By operator: the operand that indexes, the operand that is indexed, and its axis or the attribute that names it."""
INDEX_TUPLES = frozenset(["GatherND", "ScatterND"])
"""The second operand holds tuples that index the first axes of the first operand."""
SHAPE_OPERANDS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(["Reshape", "Expand", "Tile", "OneHot", "TopK", "Split", "Squeeze", "Unsqueeze", "Upsample"], (1,)),
    **dict.fromkeys(["CenterCropPad", "AffineGrid", "SplitToSequence", "SequenceAt", "SequenceErase"], (1,)),
    "SequenceInsert": (2,),
    **dict.fromkeys(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1"], (1,)),
    **dict.fromkeys(["ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"], (1,)),
    **dict.fromkeys(["ConstantOfShape", "Loop", "HannWindow", "HammingWindow", "BlackmanWindow"], (0,)),
    "Resize": (1, 2, 3),
    "Range": (0, 1, 2),
    "Slice": (1, 2, 3, 4),
    "Pad": (1, 3),
    "DFT": (1, 2),
    "STFT": (1, 3),
    "MaxUnpool": (2,),
    "Col2Im": (1, 2),
}
"""Operands whose values decide the shape of an output."""
DATA_SHAPED = frozenset(
    [
        "NonZero",
        "Unique",
        "Compress",
        "NonMaxSuppression",
        "StringSplit",
        "StringNormalizer",
        "BeamSearch",
        "GreedySearch",
        "Sampling",
    ]
)
"""The shape of an output follows from the values of an operand."""
