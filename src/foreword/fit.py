"""Layers of lines -> those that fit the budget, and their text. Pure. Light."""

from __future__ import annotations

from foreword.types import EMPTY
from foreword.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from foreword.types import Ranked

    _Picked = list[tuple[int, int]]  # (layer, line) in the order they were taken

SHARE = 95  # percent of the limit that the estimate may reach, so that the true count stays within the limit
PASSES = 8  # over what is left; estimates are near, so few find anything, and each costs a rendering


@value
class Line:
    """What one memory says in a block; `group` is its scope, where scopes have caps of their own."""

    text: str
    ranked: Ranked
    group: str = ""


@value
class Layer:
    """One part of a block: at most `limit` lines, `cap` tokens of its own (heading included; 0 is off)."""

    name: str
    lines: tuple[Line, ...]
    cap: int
    limit: int = 1000
    groups: Mapping[str, int] = EMPTY  # the most tokens a group may have, whatever is left over


@value
class Fitted:
    """The chosen lines with their text and cost, and why a layer has no line here."""

    layers: tuple[Layer, ...]
    text: str
    tokens: int
    skipped: Mapping[str, str]


def fit(
    layers: Sequence[Layer], *, limit: int, render: Callable[[Sequence[Layer]], str], count: Callable[[str], int]
) -> Fitted:
    """Take the best first, skipping what no longer fits, and never pass 95 % of *limit* as rendered."""
    return _Fitting(layers, limit * SHARE // 100, render, count).fitted()


class _Fitting:
    """One fitting under way: what was picked so far, and what each line costs."""

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
        self.costs: dict[tuple[int, int], int] = {}
        self.headings: dict[int, int] = {}  # by layer, once measured
        self.orders: dict[int, _Picked] = {}
        self.refused: set[tuple[int, int]] = set()  # it seemed to fit, and as rendered it did not

    def fitted(self) -> Fitted:
        picked = self._take(range(len(self.layers)), taken=[], room=None)
        text, tokens = "", 0
        if picked and sum(self._cost(each) for each in picked) <= self.budget:
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
            cap = min(layer.cap, self.budget - frame)
            mine = self._take((place,), taken=[], room=cap)
            whole = self._measure(mine)[1] - frame if mine else 0
            self.headings[place] = max(0, whole - sum(self._cost(each) for each in mine))
            if whole > cap:  # now that the heading's cost is known, take again with it in mind
                mine = self._verified(self._take((place,), taken=[], room=cap), most=cap + frame)[0]
            picked += mine
        return picked

    def _flow(self, picked: _Picked) -> tuple[_Picked, str, int]:
        """*picked* and, in the order of the layers, whatever else the unused tokens can pay."""
        wanted, (picked, text, tokens) = picked, self._verified(picked, most=self.budget)
        for _ in range(PASSES):
            # Only the first that was dropped is known not to fit: the rest had to make room for it.
            self.refused.update(wanted[len(picked) : len(picked) + 1])
            more = self._take(range(len(self.layers)), taken=picked, room=self.budget - tokens)
            if not more:
                break
            wanted = picked + more
            picked, text, tokens = self._verified(wanted, most=self.budget)
        return picked, text, tokens

    def _take(self, places: Sequence[int], *, taken: _Picked, room: int | None) -> _Picked:
        """What more can be picked from the layers at *places*, best first, in *room* tokens by estimate."""
        more: _Picked = []
        held = set(taken)
        for place in places:
            layer = self.layers[place]
            mine = [key for key in taken if key[0] == place]
            left = layer.limit - len(mine) if layer.cap > 0 else 0  # a cap of 0 switches a layer off
            groups = self._unspent(layer, mine)
            heading = 0 if mine else self.headings.get(place, 0)
            for key in self._best_first(place):
                if left <= 0:
                    break
                if key in held or key in self.refused:
                    continue
                cost = self._cost(key)
                group = layer.lines[key[1]].group if groups else ""
                if (room is not None and cost + heading > room) or (group in groups and cost > groups[group]):
                    continue  # skip, not stop: one long memory must not hide ten short ones
                if room is not None:
                    room -= cost + heading
                heading = 0
                if group in groups:
                    groups[group] -= cost
                left -= 1
                more.append(key)
        return more

    def _unspent(self, layer: Layer, taken: _Picked) -> dict[str, int]:
        """What each group of *layer* may still spend."""
        groups = dict(layer.groups)
        for key in taken if groups else ():
            group = layer.lines[key[1]].group
            if group in groups:
                groups[group] -= self._cost(key)
        return groups

    def _best_first(self, place: int) -> _Picked:
        """A layer's lines by score; ties keep their order."""
        if place not in self.orders:
            lines = self.layers[place].lines
            by_score = sorted(range(len(lines)), key=lambda at: -lines[at].ranked.score)
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
        """What any two layers share, markers and last line; 0 where there is only one, which then pays for it."""
        probes = [[(place, 0)] for place, layer in enumerate(self.layers) if layer.lines][:2]
        if len(probes) < 2:
            return 0
        first, second = probes
        return max(0, self._measure(first)[1] + self._measure(second)[1] - self._measure(first + second)[1])

    def _cost(self, key: tuple[int, int]) -> int:
        cost = self.costs.get(key)
        if cost is None:
            cost = self.costs[key] = self.count(self.layers[key[0]].lines[key[1]].text + "\n")
        return cost

    def _chosen(self, picked: _Picked) -> tuple[Layer, ...]:
        """The layers with only their picked lines, everything in its original order."""
        lines: dict[int, list[int]] = {}
        for place, line in sorted(picked):
            lines.setdefault(place, []).append(line)
        return tuple(
            replace(self.layers[place], lines=tuple(self.layers[place].lines[line] for line in mine))
            for place, mine in lines.items()
        )

    def _skipped(self, picked: _Picked) -> Mapping[str, str]:
        shown = {place for place, _ in picked}
        return {
            layer.name: "off" if layer.cap <= 0 else "does not fit" if layer.lines else "empty"
            for place, layer in enumerate(self.layers)
            if place not in shown
        }
