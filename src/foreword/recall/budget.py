"""Choose the lines of each layer that fit the budget, as long as they can be, and join their text. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from foreword.models import Cap, Ranked

_Key = tuple[int, int]  # layer, line
_Picked = list[_Key]  # in the order they were taken

SHARE = 95  # percent of the limit that the estimate may reach, so that the true count stays within the limit
PASSES = 8  # over what is left; estimates are near, so few find anything, and each costs a rendering
TRIES = 4  # at filling a layer's cap: the first misses by its heading, the second by what lines cost each other
_NO_LIMIT = 1 << 60


class Line(NamedTuple):
    """What one memory says in a block; `group` is its scope, where scopes have caps of their own."""

    text: str
    ranked: Ranked | None = None  # None: put together from several memories
    group: str = ""
    shorter: tuple[str, ...] = ()  # the same in fewer tokens, the longest first

    @property
    def score(self) -> float:
        """Its place in its layer: what was put together comes first."""
        return self.ranked.score if self.ranked else 1.0


class Layer(NamedTuple):
    """One part of a block: at most `limit` lines, `cap` tokens of its own (heading included; 0 is off)."""

    name: str
    lines: tuple[Line, ...]
    cap: int
    limit: int = 1000
    # The tokens that each group gets before any gets more
    groups: Mapping[str, int] = {}
    least: int = 0  # so many of the best become shorter before one of them is left out


class Fitted(NamedTuple):
    """The chosen lines with their text and cost, and why a layer has no line here."""

    layers: tuple[Layer, ...]
    text: str
    tokens: int
    skipped: Mapping[str, str]


def fit(
    layers: Sequence[Layer],
    *,
    limit: int,
    render: Callable[[Sequence[Layer]], str],
    count: Callable[[str], int],
    cap: Cap | None = None,
) -> Fitted:
    """Take the best first, skipping what no longer fits, and never pass 95 % of *limit*, nor *cap*, as rendered."""
    budget = limit * SHARE // 100
    fitted = _Fitting(layers, budget, render, count).fitted()
    if cap is None or (size := cap.size(fitted.text)) <= cap.most:
        return fitted
    # Again, by what the host counts: skipped, shortened and shared out is as ever, and the budget stays one.
    most = cap.most

    def cost(text: str) -> int:
        return max(cap.size(text), -(-count(text) * most // max(1, budget)))

    tokens = max(1, most * fitted.tokens // size, sum(layer.cap for layer in layers))  # that the cap is worth
    fitted = _Fitting([_resized(layer, most, of=tokens) for layer in layers], most, render, cost).fitted()
    return fitted._replace(tokens=count(fitted.text))


def _resized(layer: Layer, most: int, *, of: int) -> Layer:
    """A layer whose caps are the same part of *most* as *of* so many tokens; none becomes 0, which is off."""
    groups = {name: tokens * most // of for name, tokens in layer.groups.items()}
    return layer._replace(cap=-(-layer.cap * most // of), groups=groups)


class _Fitting:
    """One fitting under way: what each line costs, and which of its forms is meant."""

    def __init__(
        self,
        layers: Sequence[Layer],
        budget: int,
        render: Callable[[Sequence[Layer]], str],
        count: Callable[[str], int],
    ) -> None:
        self.layers = layers
        self.budget = budget
        self.render = render
        self.count = count
        self.sizes: dict[_Key, int] = {}  # which form of a line is meant; 0, the longest, where none is named
        self.costs: dict[_Key, int] = {}  # of that form
        self.headings: dict[int, int] = {}  # by layer, once measured
        self.orders: dict[int, _Picked] = {}
        self.refused: set[_Key] = set()  # it seemed to fit, and as rendered it did not

    def fitted(self) -> Fitted:
        # Where lines are too many and not too long, the best of one group must not take the places of all others.
        crowded = any(layer.groups and len(layer.lines) > layer.limit for layer in self.layers)
        picked = [] if crowded else self._take(range(len(self.layers)), taken=[], room=_NO_LIMIT)
        text, tokens = "", 0
        if picked and self._sum(picked) <= self.budget:
            text, tokens = self._measure(picked)  # most sessions know little, and one rendering is enough
        if tokens > self.budget or not text:
            picked, text, tokens = self._flow(self._within_caps())
        if not text:
            picked, tokens = [], 0
        return Fitted(layers=self._chosen(picked), text=text, tokens=tokens, skipped=self._skipped(picked))

    def _within_caps(self) -> _Picked:
        """The best of each layer alone, its cost measured as rendered without the frame that all layers share."""
        frame = self._frame()
        picked: _Picked = []
        for place, layer in enumerate(self.layers):
            cap = room = min(layer.cap, self.budget - frame)
            heading = 0
            for _ in range(TRIES):
                mine = self._best(place, room=room)
                whole = self._measure(mine)[1] - frame if mine else 0
                heading = max(heading, whole - self._sum(mine))
                if whole <= cap:
                    break
                room = self._sum(mine) - (whole - cap)
            else:
                mine = self._verified(mine, most=cap + frame)[0]
            self.headings[place] = heading  # for when the layer has no line yet, and gets one from what is left
            picked += mine
        return picked

    def _best(self, place: int, *, room: int) -> _Picked:
        """A layer's best in *room* tokens by estimate: first each group in its cap, then whoever needs what is left."""
        layer = self.layers[place]
        if layer.least:
            self._level(self._best_first(place)[: min(layer.least, layer.limit)], room=room)
        if not layer.groups:
            return self._take((place,), taken=[], room=room)
        mine = self._take((place,), taken=[], room=room, groups=dict(layer.groups))
        return mine + self._take((place,), taken=mine, room=room - self._sum(mine))

    def _level(self, wanted: _Picked, *, room: int) -> None:
        """Shorten the longest of *wanted* step by step until all fit; where they never do, without the last of them."""
        over = self._sum(wanted) - room
        while wanted and over > 0:
            costs = [(self.costs[key], at) for at, key in enumerate(wanted) if self._is_longer(key)]
            if costs:
                key = wanted[max(costs)[1]]
                over += self._resize(key, self.sizes.get(key, 0) + 1) - max(costs)[0]
            else:
                wanted = wanted[:-1]
                over = sum(self._resize(key, 0) for key in wanted) - room

    def _is_longer(self, key: _Key) -> bool:
        """Whether a line can still be shorter than it is meant to be."""
        return self.sizes.get(key, 0) < len(self.layers[key[0]].lines[key[1]].shorter)

    def _resize(self, key: _Key, size: int) -> int:
        """Mean a line in another of its forms, and say what that costs."""
        line = self.layers[key[0]].lines[key[1]]
        self.sizes[key] = size
        self.costs[key] = self.count((line.shorter[size - 1] if size else line.text) + "\n")
        return self.costs[key]

    def _flow(self, picked: _Picked) -> tuple[_Picked, str, int]:
        """*picked* and, in the order of the layers, whatever else the unused tokens can pay: whole, then shorter."""
        wanted, (picked, text, tokens) = picked, self._verified(picked, most=self.budget)
        for shorter in (False, True):
            for _ in range(PASSES):
                # Only the first that was dropped is known not to fit: the rest had to make room for it.
                self.refused.update(wanted[len(picked) : len(picked) + 1])
                room = self.budget - tokens
                more = self._take(range(len(self.layers)), taken=picked, room=room, shorter=shorter)
                if not more:
                    break
                wanted = picked + more
                picked, text, tokens = self._verified(wanted, most=self.budget)
        return picked, text, tokens

    def _take(
        self,
        places: Sequence[int],
        *,
        taken: _Picked,
        room: int,
        groups: dict[str, int] | None = None,
        shorter: bool = False,
    ) -> _Picked:
        """What more can be picked from the layers at *places*, best first, in *room* tokens by estimate."""
        more: _Picked = []
        held = self.refused.union(taken)
        for place in places:
            layer = self.layers[place]
            mine = sum(key[0] == place for key in taken)
            left = layer.limit - mine if layer.cap > 0 else 0  # a cap of 0 switches a layer off
            seats = dict.fromkeys(groups or (), max(1, layer.limit // max(1, len(groups or ()))))  # of each group
            heading = 0 if mine else self.headings.get(place, 0)
            for key in self._best_first(place):
                if left <= 0:
                    break
                if key in held:
                    continue
                line = layer.lines[key[1]]
                most = room - heading
                if groups and line.group in groups:
                    most = min(most, groups[line.group]) if seats[line.group] else -1
                cost = self._cost(key)
                while shorter and cost > most and self._is_longer(key):
                    cost = self._resize(key, self.sizes.get(key, 0) + 1)
                if cost > most:
                    continue  # skip, not stop: one long memory must not hide ten short ones
                room -= cost + heading
                heading = 0
                if groups and line.group in groups:
                    groups[line.group] -= cost
                    seats[line.group] -= 1
                left -= 1
                more.append(key)
        return more

    def _best_first(self, place: int) -> _Picked:
        """A layer's lines by score; ties keep their order."""
        if place not in self.orders:
            lines = self.layers[place].lines
            by_score = sorted(range(len(lines)), key=lambda at: -lines[at].score)
            self.orders[place] = [(place, at) for at in by_score]
        return self.orders[place]

    def _verified(self, picked: _Picked, *, most: int) -> tuple[_Picked, str, int]:
        """*picked* without the last ones that, as rendered, pass *most*, with the text and its cost."""
        while picked:
            text, tokens = self._measure(picked)
            if tokens <= most:
                return picked, text, tokens
            over = tokens - most
            last = picked[-1][0]
            # Several at once, so that a far miss costs few renderings; not past a layer, whose heading goes with it.
            while picked and over > 0 and picked[-1][0] == last:
                over -= max(1, self._cost(picked[-1]))
                picked = picked[:-1]
        return [], "", 0

    def _measure(self, picked: _Picked) -> tuple[str, int]:
        text = self.render(self._chosen(picked))
        return text, self.count(text)

    def _frame(self) -> int:
        """What any two layers share, markers and last line; where there is only one, its heading as well."""
        probes = [[(place, 0)] for place, layer in enumerate(self.layers) if layer.lines][:2]
        if len(probes) < 2:
            return sum(max(0, self._measure(probe)[1] - self._sum(probe)) for probe in probes)
        first, second = probes
        return max(0, self._measure(first)[1] + self._measure(second)[1] - self._measure(first + second)[1])

    def _sum(self, picked: _Picked) -> int:
        return sum(self._cost(key) for key in picked)

    def _cost(self, key: _Key) -> int:
        """What a line costs in the form that is meant."""
        cost = self.costs.get(key)
        if cost is None:
            cost = self.costs[key] = self.count(self.layers[key[0]].lines[key[1]].text + "\n")
        return cost

    def _chosen(self, picked: _Picked) -> tuple[Layer, ...]:
        """The layers with only their picked lines, each as it is meant, everything in its original order."""
        lines: dict[int, list[Line]] = {}
        for key in sorted(picked):
            line, size = self.layers[key[0]].lines[key[1]], self.sizes.get(key, 0)
            lines.setdefault(key[0], []).append(line._replace(text=line.shorter[size - 1]) if size else line)
        return tuple(self.layers[place]._replace(lines=tuple(mine)) for place, mine in lines.items())

    def _skipped(self, picked: _Picked) -> Mapping[str, str]:
        shown = {place for place, _ in picked}
        return {
            layer.name: "off" if layer.cap <= 0 else "does not fit" if layer.lines else "empty"
            for place, layer in enumerate(self.layers)
            if place not in shown
        }
