"""The equations of recurrent networks as lines, which `explain` prints and a test evaluates.

Indices: j source positions (the last is S), n segments (N), k words of a segment or question (K),
t target positions.
"""

LAST = {"j": "S", "n": "N", "k": "K"}
NORM = "norm(a) = (a - mean(a)) / sqrt(var(a) + 1e-5)"
ZERO = "before the first step every state is 0"


def raised(layer: int) -> str:
    """The number of a layer as it is written at a state.

    >>> raised(12)
    '¹²'
    """
    return str(layer).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def recurrence(
    cell: str, *, state: str, mark: str = "", tag: str, reads: str, at: str = "t", step: int = -1
) -> list[str]:
    """The equations of a cell.

    `state` is the letter of its state and `mark` the layer and direction beside it, `tag` tells its
    weights from those of others, `reads` is its input, `at` the index, and `step` leads to the
    state before.

    >>> recurrence("rnn", state="h", tag="enc", reads="E_enc[x_j]", at="j")
    ['h_j = tanh(U_enc E_enc[x_j] + b_enc + W_enc h_{j-1} + b′_enc)']
    """
    before = ",".join([*at[:-1], f"{at[-1]}{step:+d}"])

    def given(gate: str) -> str:
        return f"U_{tag}{gate} {reads} + b_{tag}{gate}"

    def recurrent(gate: str) -> str:
        return f"W_{tag}{gate} {state}{mark}_{{{before}}} + b′_{tag}{gate}"

    def gate(letter: str, name: str) -> str:
        sigmoid = f"σ({given(f',{letter}')} + {recurrent(f',{letter}')})"
        return f"{letter}_{tag},{at} = {sigmoid}: the {name} gate"

    before_state = f"{state}{mark}_{{{before}}}"
    if cell == "rnn":
        return [f"{state}{mark}_{at} = tanh({given('')} + {recurrent('')})"]
    if cell == "gru":
        new, update = f"{state}̃{mark}_{at}", f"i_{tag},{at}"
        return [
            gate("o", "reset"),
            gate("i", "update"),
            f"{new} = tanh({given('')} + o_{tag},{at} ⊙ ({recurrent('')}))",
            f"{state}{mark}_{at} = {update} ⊙ {before_state} + (1 - {update}) ⊙ {new}",
        ]
    kept = f"f_{tag},{at} ⊙ m_{{{tag},{before}}} + i_{tag},{at} ⊙ m̃_{tag},{at}"
    return [
        gate("o", "output"),
        gate("i", "input"),
        gate("f", "forget"),
        f"m̃_{tag},{at} = tanh({given('')} + {recurrent('')})",
        f"m_{tag},{at} = {kept}: the memory cell",
        f"{state}{mark}_{at} = o_{tag},{at} ⊙ tanh(m_{tag},{at})",
    ]


def layers_above(count: int, *, state: str, tag: str, reads: str, at: str = "t") -> list[str]:
    """The layers above the first, each as a change of its lines; none where there is one layer."""
    if count == 1:
        return []
    above = [
        f"{state}{raised(layer)}_{at}: the same with {tag}{layer} for {tag}1, {raised(layer)} "
        f"for ¹, and {state}{raised(layer - 1)}_{at} for {reads}"
        for layer in range(2, count + 1)
    ]
    return [*above, f"{state}_{at} = {state}{raised(count)}_{at}"]


def stacked(cell: str, count: int, tag: str, *, reads: str) -> list[str]:
    """The equations of a decoder's layers: initial states if several, the cell, those above."""
    marks = [""] if count == 1 else [raised(layer + 1) for layer in range(count)]
    tags = [tag] if count == 1 else [f"{tag}{layer + 1}" for layer in range(count)]
    first = [f"s{mark}_0" for mark in marks] + [f"m_{tag},0" for tag in tags if cell == "lstm"]
    return [
        *([f"[{', '.join(first)}] = d_0"] if len(first) > 1 else []),
        *recurrence(cell, state="s", mark=marks[0], tag=tags[0], reads=reads),
        *layers_above(count, state="s", tag=tag, reads=reads),
    ]


def directions(
    cell: str, count: int, direction: str, tag: str, *, state: str, reads: str, at: str
) -> list[str]:
    """The equations of `count` layers that read in one direction or in both."""
    is_both = direction == "both"
    low = "" if count == 1 else "¹"
    arrow = "→" if is_both else ""
    first = f"{tag}{1 if count > 1 else ''}{arrow}"
    step = 1 if direction == "backward" else -1
    lines = recurrence(
        cell, state=state, mark=low + arrow, tag=first, reads=reads, at=at, step=step
    )
    if is_both:
        word = at[-1]
        lines += [
            f"{state}{low}←_{at}: the same with ← for → and {word}+1 for {word}-1",
            f"{state}{low}_{at} = [{state}{low}→_{at}, {state}{low}←_{at}]",
        ]
    return [*lines, *layers_above(count, state=state, tag=tag, reads=reads, at=at), ZERO]


def last_states(direction: str, count: int, state: str, at: str) -> str:
    """The last state that each direction reaches."""
    first, last = f"{at[:-1]}1", f"{at[:-1]}{LAST[at[-1]]}"
    if direction == "both":
        high = "" if count == 1 else raised(count)
        return f"[{state}{high}→_{last}, {state}{high}←_{first}]"
    return f"{state}_{last if direction == 'forward' else first}"
