"""Choose the lines of each layer that fit the budget, and join their text. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from foreword.models import Cap, Ranked

_Key = tuple[int, int]  # layer, line
_Picked = list[_Key]  # in the order they were taken

SHARE = 95  # percent of the limit that the estimate may reach, so that the true count stays within the limit


class Line(NamedTuple):
    """What one memory says in a block; `group` is its scope, where scopes have caps of their own."""

    text: str
    ranked: Ranked | None = None  # None: put together from several memories
    group: str = ""

    @property
    def score(self) -> float:
        """Return its place in its layer: what was put together comes first."""
        return self.ranked.score if self.ranked else 1.0


class Layer(NamedTuple):
    """One part of a block: at most `limit` lines, `cap` tokens of its own (heading included; 0 is off)."""

    name: str
    lines: tuple[Line, ...]
    cap: int
    limit: int = 1000
    # The tokens that each group gets before any gets more
    groups: Mapping[str, int] = {}


class Fitted(NamedTuple):
    """The chosen lines with their text and cost, and why a layer has no line here."""

    layers: tuple[Layer, ...]
    text: str
    tokens: int
    skipped: Mapping[str, str]


Render = Callable[[Sequence[Layer]], str]
Count = Callable[[str], int]


def fit(layers: Sequence[Layer], *, limit: int, render: Render, count: Count, cap: Cap | None = None) -> Fitted:
    """Take the best first, skipping what no longer fits, and never pass 95 % of *limit*, nor *cap*, as rendered."""
    budget = limit * SHARE // 100
    fitted = _Fitting(layers, budget, render, count).fitted()
    if cap is None or (size := cap.size(fitted.text)) <= cap.most:
        return fitted
    share = max(1, cap.most * fitted.tokens // size)  # the tokens that the cap is worth: then all of it costs so many

    def cost(text: str) -> int:
        return max(-(-cap.size(text) * share // cap.most), -(-count(text) * share // budget))

    caps = max(share, sum(layer.cap for layer in layers))
    smaller = [each._replace(cap=-(-each.cap * share // caps)) for each in layers]  # none becomes 0, which is off
    fitted = _Fitting(smaller, share, render, cost).fitted()
    return fitted._replace(tokens=count(fitted.text))


class _Fitting:
    """One fitting under way, and what each line costs."""

    def __init__(self, layers: Sequence[Layer], budget: int, render: Render, count: Count) -> None:
        self.layers, self.budget, self.render, self.count = layers, budget, render, count
        self.lines = {(place, at): line for place, layer in enumerate(layers) for at, line in enumerate(layer.lines)}
        self.costs = {key: count(line.text + "\n") for key, line in self.lines.items()}
        self.heading = 0  # what the heading of a layer costs
        # The lines of each layer by score; ties keep their order, and a cap of 0 switches a layer off.
        by_score = sorted(self.lines, key=lambda key: -self.lines[key].score)
        self.best = [[key for key in by_score if key[0] == at and each.cap > 0] for at, each in enumerate(layers)]

    def fitted(self) -> Fitted:
        # Where lines are too many and not too long, the best of one group must not take the places of all others.
        crowded = any(layer.groups and len(layer.lines) > layer.limit for layer in self.layers)
        picked = [key for place, layer in enumerate(self.layers) for key in self.best[place][: max(0, layer.limit)]]
        text, tokens = "", 0
        if not crowded and self._sum(picked) <= self.budget:
            text, tokens = self._measure(picked)  # most sessions know little, and one rendering is enough
        if tokens > self.budget or not text:
            picked, text, tokens = self._verified(self._within_caps())
            # In the order of the layers, what the unused tokens can pay.
            if more := self._take(range(len(self.layers)), taken=picked, room=self.budget - tokens):
                picked, text, tokens = self._verified(picked + more)
        if not text:
            picked, tokens = [], 0
        shown = {place for place, _ in picked}
        skipped = {
            layer.name: "off" if layer.cap <= 0 else "does not fit" if layer.lines else "empty"
            for place, layer in enumerate(self.layers)
            if place not in shown
        }
        return Fitted(self._chosen(picked), text, tokens, skipped)

    def _within_caps(self) -> _Picked:
        """Return the best of each layer within its cap, heading included, by estimate."""
        first = [keys[0] for keys in self.best if keys]
        if not first:
            return []
        # What the first lines of all layers cost beside themselves: a heading each, and a frame, which one has as well.
        one, every = (self._measure(some)[1] - self._sum(some) for some in (first[:1], first))
        self.heading = max(0, every - one) // max(1, len(first) - 1)
        most = self.budget - one + self.heading
        found: _Picked = []
        for place, _ in first:
            layer = self.layers[place]
            room = min(layer.cap, most)
            # First each group within its own cap, then whoever needs what is left.
            mine = self._take([place], taken=[], room=room, groups=dict(layer.groups))
            found += mine
            found += self._take([place], taken=mine, room=room - self._sum(mine) - self.heading * bool(mine))
        return found

    def _take(
        self, places: Sequence[int], *, taken: _Picked, room: int, groups: dict[str, int] | None = None
    ) -> _Picked:
        """Return what more can be picked from the layers at *places*, best first, in *room* tokens by estimate."""
        groups = groups or {}
        more: _Picked = []
        for place in places:
            limit, mine = self.layers[place].limit, sum(key[0] == place for key in taken)
            seats = dict.fromkeys(groups, max(1, limit // max(1, len(groups))))  # of each group
            heading = 0 if mine else self.heading
            for key in self.best[place]:
                group, cost, most = self.lines[key].group, self.costs[key], room - heading
                if group in groups:
                    most = min(most, groups[group]) if seats[group] else -1
                if key in taken or cost > most or mine >= limit:
                    continue  # skip, not stop: one long memory must not hide ten short ones
                room -= cost + heading
                heading = 0
                if group in groups:
                    groups[group] -= cost
                    seats[group] -= 1
                mine += 1
                more.append(key)
        return more

    def _verified(self, picked: _Picked) -> tuple[_Picked, str, int]:
        """Return *picked* without the last ones that, as rendered, pass the budget, with the text and its cost."""
        while picked:
            text, tokens = self._measure(picked)
            if tokens <= self.budget:
                return picked, text, tokens
            over, last = tokens - self.budget, picked[-1][0]
            # Several at once, so that a far miss costs few renderings; not past a layer, whose heading goes with it.
            while picked and over > 0 and picked[-1][0] == last:
                over -= max(1, self.costs[picked[-1]])
                picked = picked[:-1]
        return [], "", 0

    def _measure(self, picked: _Picked) -> tuple[str, int]:
        text = self.render(self._chosen(picked))
        return text, self.count(text)

    def _sum(self, picked: _Picked) -> int:
        return sum(self.costs[key] for key in picked)

    def _chosen(self, picked: _Picked) -> tuple[Layer, ...]:
        """Return the layers with only their picked lines, everything in its original order."""
        lines: dict[int, list[Line]] = {}
        for key in sorted(picked):
            lines.setdefault(key[0], []).append(self.lines[key])
        return tuple(self.layers[place]._replace(lines=tuple(mine)) for place, mine in lines.items())
