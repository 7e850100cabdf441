"""The HTML of views of images, videos and points.

Dims: T output tokens, G groups of neighbouring frames.
"""

from html import escape
from itertools import pairwise

import numpy as np

from sixjars.drawing.frames import frame_groups, group_name, grouped
from sixjars.drawing.html_parts import Body, light_uri, photo_uri, shade, word, words
from sixjars.drawing.page import percent
from sixjars.drawing.tour import MOST_NAMED, MOVED, apart, tour_title
from sixjars.drawing.view import View


def image_body(view: View) -> Body:
    """The image, large; and a tile for each word of the output, bright where it attended to."""
    (image, box), output, names = view.backdrop, view.outputs[0], view.names
    rows, columns = view.layout.shape
    left, top, right, bottom = (100 * side for side in box)
    place = f"left:{left:.2f}%;top:{top:.2f}%;width:{right - left:.2f}%;height:{bottom - top:.2f}%"
    photo, shape = photo_uri(image, 480), f"aspect-ratio:{image.shape[1]}/{image.shape[0]}"
    grid = f"grid-template-columns:repeat({columns},1fr);grid-template-rows:repeat({rows},1fr)"
    cells = "".join(
        f'<span tabindex="-1" role="button" aria-label="{escape(name)}" data-s="{at}"></span>'
        for at, name in enumerate(names)
    )
    # The photograph is written once; the tiles have it from a variable.
    large = (
        f'<div class="picture large" style="{shape};background-image:var(--photo)">'
        f'<div class="light" style="{place}"></div>'
        f'<div class="cells" style="{place};{grid}">{cells}</div></div>'
    )
    tiles = []
    for step, (token, row) in enumerate(zip(output.tokens, output.weights, strict=True)):
        light = light_uri(np.asarray(row).reshape(rows, columns))
        index, most = "0" if step == 0 else "-1", percent(max(row))
        tiles.append(
            f'<div class="tile" role="button" tabindex="{index}" data-t="{step}" '
            f'aria-label="{escape(token)}, largest weight {most}">'
            f"<p><span>{escape(token)}</span><small>{most}</small></p>"
            f'<div class="picture" style="{shape};background-image:var(--photo)">'
            f'<div class="light" style="{place};background-image:url({light})"></div></div></div>'
        )
    html = (
        f'<div style="--photo:url({photo})">{large}<div class="tiles">{"".join(tiles)}</div></div>'
        '<p class="note">Bright: what a word attended to, relative to its largest weight, '
        "beside the word.</p>"
    )
    return Body(html, names, output.weights)


def frames_body(view: View) -> Body:
    """The frames on a time line, and below each a bar for every word of the output."""
    frames = view.backdrop
    output = view.outputs[0]
    groups = frame_groups(len(frames))
    weights_TG = grouped(np.asarray(output.weights), groups)
    names = [group_name(group) for group in groups]
    peak = float(weights_TG.max()) or 1.0
    photos = [photo_uri(frames[group[len(group) // 2]], 120) for group in groups]
    names = [f"frame {name}" for name in names]
    head = "".join(
        f'<th scope="col"><div class="word" role="button" tabindex="-1" data-s="{at}" '
        f'aria-label="{name}"><img src="{photo}" alt="{name}"></div>'
        f"<span>{name.removeprefix('frame ')}</span></th>"
        for at, (name, photo) in enumerate(zip(names, photos, strict=True))
    )
    rows = []
    for step, (token, row) in enumerate(zip(output.tokens, weights_TG.tolist(), strict=True)):
        numbers = [f"{weight:.2f}" if weight >= 0.1 else "" for weight in row]
        cells = "".join(
            f'<td data-t="{step}" {shade(weight / peak)}>{number}</td>'
            for weight, number in zip(row, numbers, strict=True)
        )
        rows.append(f'<tr><th scope="row">{word(token, "t", step)}</th>{cells}</tr>')
    note = f"Height: the attention weight, from 0 to {peak:.2f}."
    if len(groups) < len(frames):
        note += f" {len(groups)} of {len(frames)} frames; the weights of those between are added."
    html = (
        f'<div class="scroll"><table class="strip"><thead><tr><td></td>{head}</tr></thead>'
        f'<tbody>{"".join(rows)}</tbody></table></div><p class="note">{note}</p>'
    )
    return Body(html, names, weights_TG.tolist())


def tour_body(view: View) -> Body:
    """Points in the order of the output: a closed line, or bars for numbers."""
    output = view.outputs[0]
    points = view.backdrop
    names = [f"point {at}" for at in range(len(points))]
    order = [int(place) for place in output.text.split()]
    if len(points[0]) == 1:
        shapes = _bars(points, order)
        note = "Bars: the numbers in the order of the output; "
        note += "below them their positions in the input."
    else:
        shapes, note = _line(points, order), "Numbers: positions in the input."
    if set(order) < set(range(len(points))):
        note += " Grey: not in the output."
    html = (
        f"<p>{escape(tour_title(points, order))}</p>{words('output', output.tokens, 't')}{shapes}"
        f'<p class="note">{note} Orange: the first of the output. '
        "Pointing at a step of the output shows its weights in blue.</p>"
    )
    return Body(html, names, output.weights)


def _line(points: list[tuple[float, ...]], order: list[int]) -> str:
    """Circles, and arrows from one to the next."""
    low, high = np.array(points).min(0), np.array(points).max(0)
    spread = float(max(high - low)) or 1.0
    offsets = [(440 * (x - low[0]) / spread, 440 * (y - low[1]) / spread) for x, y in points]
    places = [(30 + right, 470 - up) for right, up in offsets]
    spots = [(float(x), float(y)) for x, y in apart(places, 28.0)]
    ways = "".join(_way(spots[a], spots[b]) for a, b in pairwise([*order, *order[:1]]))
    dots = "".join(
        f'<g data-s="{at}" role="button" tabindex="-1" aria-label="point {at}"{_place(order, at)}>'
        f'<circle class="shape" cx="{x:.1f}" cy="{y:.1f}" r="13"/>'
        f'<text x="{x:.1f}" y="{y + 4.5:.1f}">{at}</text></g>'
        for at, (x, y) in enumerate(spots)
    )
    (left, top), (right, bottom) = (edge(spots, axis=0) for edge in (np.min, np.max))
    width = max(right - left + 32, 500.0)  # points that were moved apart may lie outside
    box = f"{(left + right - width) / 2:.0f} {top - 16:.0f} {width:.0f} {bottom - top + 32:.0f}"
    moved = f'<p class="note">{MOVED}</p>' if spots != places else ""
    attributes = f'class="tour" viewBox="{box}" role="group" aria-label="points"'
    return f"<svg {attributes}>{ways}{dots}</svg>{moved}"


def _place(order: list[int], at: int) -> str:
    """The class of a point that is the first of the output, or not in it."""
    if at not in order:
        return ' class="left-out"'
    return ' class="first"' if at == order[0] else ""


def _way(here: tuple[float, float], there: tuple[float, float]) -> str:
    """An arrow between two circles, from edge to edge."""
    (x, y), (u, v) = here, there
    far = max(float(np.hypot(u - x, v - y)), 1e-6)
    along_x, along_y = (u - x) / far, (v - y) / far
    edge = min(14.0, far / 2)
    tip_x, tip_y = u - edge * along_x, v - edge * along_y
    back_x, back_y = tip_x - 12 * along_x, tip_y - 12 * along_y
    left, right = (
        (back_x - 4 * along_y, back_y + 4 * along_x),
        (back_x + 4 * along_y, back_y - 4 * along_x),
    )
    spots = " ".join(f"{a:.1f},{b:.1f}" for a, b in ((tip_x, tip_y), left, right))
    begin = f'x1="{x + edge * along_x:.1f}" y1="{y + edge * along_y:.1f}"'
    line = f'<line class="way" {begin} x2="{back_x:.1f}" y2="{back_y:.1f}"/>'
    return f'{line}<polygon class="head" points="{spots}"/>'


def _bars(points: list[tuple[float, ...]], order: list[int]) -> str:
    """Numbers as bars, in the order of the output; the others follow."""
    shown = [*order, *(at for at in range(len(points)) if at not in order)]
    low, high = min(0.0, *(point[0] for point in points)), max(0.0, *(point[0] for point in points))
    unit, wide = 230 / ((high - low) or 1.0), 480 / len(shown)
    ground, letters = 250 + unit * low, min(13.0, wide / 2.5)
    shapes = []
    for place, at in enumerate(shown):
        number = points[at][0]
        x, top = 10 + place * wide, ground - max(unit * number, 0)
        shapes.append(
            f'<g data-s="{at}" role="button" tabindex="-1" aria-label="number {number:g}"'
            f'{_place(order, at)}><rect class="shape" x="{x + wide / 10:.1f}" y="{top:.1f}" '
            f'width="{0.8 * wide:.1f}" height="{abs(unit * number):.1f}"/></g>'
        )
        if len(shown) <= MOST_NAMED:
            text = f'style="font-size:{letters:.1f}px" x="{x + wide / 2:.1f}"'
            shapes.append(f'<text {text} y="{top - 5:.1f}">{number:.3g}</text>')
            shapes.append(f'<text class="below" {text} y="268">{at}</text>')
    attributes = 'class="tour" viewBox="0 0 500 280" role="group" aria-label="numbers"'
    return f"<svg {attributes}>{''.join(shapes)}</svg>"
