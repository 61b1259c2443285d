"""Moment -> what recall says at it, and what was left out just below the line, each with its reason. Keeps nothing.

recall runs as it always does, only that its *look* and its *fit* are listened to: what is said here is what it says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, Any

from foreword.layout import LayerRule, Recipe
from foreword.learn import asleep
from foreword.recall import render
from foreword.recall.budget import SHARE, Fitted, Layer, Line, fit
from foreword.recall.pipeline import LASTING, left_open, look, recall, retells
from foreword.recall.rank import CERTAIN, FAR, least
from foreword.types import Cap, Memory, Moment, Query, Ranked, Recalled, Skipped

if TYPE_CHECKING:
    from foreword.recall.search import Searchable

MOST_LEFT = 20  # of what did not come: a screen full, best first
# Why something did not come; the words beside it say it of this one.
REASONS = (
    "room",  # no room in the budget
    "cap",  # nor in the tokens of its layer
    "group",  # nor in those of its scope
    "limit",  # its layer shows so many
    "off",  # its layer shows none
    "host",  # the host takes no more in one output
    "threshold",
    "shown",  # in this context window
    "older",  # than a window that goes on
    "unsure",  # a learning that must be asked for
    "trust",  # a rule that the user did not say
    "closed",  # a handoff that a later one replaced
    "retold",  # a failure, by what was promoted from it; or the other way round
)
SHORTER = "shorter"  # it came, in fewer words


@dataclass(frozen=True)
class Entry:
    """One memory that was weighed: the line that it is, or would have been, and why not all of it is there."""

    memory: Memory
    layer: str
    score: float
    tokens: int
    why: Mapping[str, float]
    line: str
    reason: str = ""  # one of REASONS, or SHORTER; empty where it came whole
    says: str = ""  # the same in words


@dataclass(frozen=True)
class Part:
    """One layer: what it may have, what it had, and the score from which on something is said in it."""

    name: str
    cap: int
    limit: int
    spent: int
    items: int
    least: float
    skipped: str  # why it says nothing; empty where it does


@dataclass(frozen=True)
class Trial:
    """What recall said, layer by layer and item by item, and what was left out, best first."""

    got: Recalled | Skipped
    layers: tuple[Part, ...]
    items: tuple[Entry, ...]
    left: tuple[Entry, ...]
    more: int  # left out beside those
    best: Ranked | None = None  # of all that was weighed, whatever became of it


def tried(
    store: Searchable,
    moment: Moment,
    *,
    recipe: Recipe,
    threshold: float,
    now: float,
    shown: Callable[[], frozenset[str]] = frozenset,
    begun: Callable[[], float] = lambda: 0.0,
    **more: Any,
) -> Trial:
    """What recall says to the same arguments, and what it weighed and did not say."""
    heard = _Heard(shown, begun)
    got = recall(
        store,
        moment,
        recipe=recipe,
        threshold=threshold,
        now=now,
        shown=heard.shown,
        begun=heard.begun,
        look=heard.look,
        fit=heard.fit,
        **more,
    )
    return _Telling(heard, got, moment=moment, recipe=recipe, threshold=threshold, now=now).trial()


class _Heard:
    """What one recall asked and was answered."""

    def __init__(self, shown: Callable[[], frozenset[str]], begun: Callable[[], float]) -> None:
        self._shown, self._begun = shown, begun
        self.known: frozenset[str] = frozenset()
        self.since = 0.0
        self.found: dict[tuple[str, ...], Sequence[Ranked]] = {}  # by kinds, which no two layers of a recipe share
        self.offered: dict[str, Layer] = {}  # what was to be fitted
        self.fitted = Fitted(layers=(), text="", tokens=0, skipped={})
        self.cap: Cap | None = None
        self.count: Callable[[str], int] = len

    def shown(self) -> frozenset[str]:
        self.known = self._shown()
        return self.known

    def begun(self) -> float:
        self.since = self._begun()
        return self.since

    def look(self, store: Searchable, query: Query, **more: Any) -> tuple[tuple[Ranked, ...], tuple[str, ...]]:
        ranked, wrong = look(store, query, **more)
        self.found[query.kinds] = ranked
        return ranked, wrong

    def fit(
        self, layers: Sequence[Layer], *, count: Callable[[str], int], cap: Cap | None = None, **more: Any
    ) -> Fitted:
        self.offered, self.count, self.cap = {layer.name: layer for layer in layers}, count, cap
        self.fitted = fit(layers, count=count, cap=cap, **more)
        return self.fitted


class _Telling:
    """One recall that was heard, told item by item."""

    def __init__(
        self, heard: _Heard, got: Recalled | Skipped, *, moment: Moment, recipe: Recipe, threshold: float, now: float
    ) -> None:
        self.heard, self.got = heard, got
        self.moment, self.recipe, self.threshold, self.now = moment, recipe, threshold, now
        self.chosen = {layer.name: layer.lines for layer in heard.fitted.layers} if heard.fitted.text else {}

    def trial(self) -> Trial:
        listed = {line.ranked.memory.id for lines in self.chosen.values() for line in lines}
        left: list[list[Entry]] = []
        for rule in self.recipe.layers:
            left.append([each for each in self._left(rule) if each.memory.id not in listed])
            listed.update(each.memory.id for each in left[-1])
        shared = _shared(left, most=MOST_LEFT)
        return Trial(
            got=self.got,
            layers=tuple(map(self._part, self.recipe.layers)),
            items=tuple(self._items()),
            left=tuple(chain.from_iterable(shared)),
            more=sum(map(len, left)) - sum(map(len, shared)),
            best=max((some[0] for some in self.heard.found.values() if some), key=_score, default=None),
        )

    def _part(self, rule: LayerRule) -> Part:
        layer = self.heard.offered.get(rule.name)
        return Part(
            name=rule.name,
            cap=rule.cap,
            limit=layer.limit if layer else rule.limit,
            spent=self.got.layers.get(rule.name, 0) if isinstance(self.got, Recalled) else 0,
            items=len(self.chosen.get(rule.name, ())),
            least=self._least(rule),
            skipped=self.got.skipped.get(rule.name, ""),
        )

    def _items(self) -> Iterator[Entry]:
        """What came, as recall tells it, with its line."""
        given = self.got.items if isinstance(self.got, Recalled) else ()
        lines = [(name, line) for name, some in self.chosen.items() for line in some]
        for item, (name, line) in zip(given, lines, strict=True):
            memory = line.ranked.memory
            whole = next(each.text for each in self.heard.offered[name].lines if each.ranked.memory.id == memory.id)
            shorter = "" if whole == line.text else f"said in fewer words; whole, {self.heard.count(whole)} tokens"
            yield Entry(
                memory=memory,
                layer=name,
                score=item.score,
                tokens=item.tokens,
                why=item.why,
                line=line.text,
                reason=SHORTER if shorter else "",
                says=shorter,
            )

    def _left(self, rule: LayerRule) -> Iterator[Entry]:
        """What a layer weighed and may not have said: first what was to be fitted, then what never came so far."""
        layer = self.heard.offered.get(rule.name)
        lines = {line.ranked.memory.id: line for line in layer.lines} if layer else {}
        found = self.heard.found.get(rule.kinds, ())
        in_line = left_open([each.memory for each in found]) if rule.name == "continuity" else ()
        weighed = (*(line.ranked for line in lines.values()), *found)
        for id, ranked in {each.memory.id: each for each in weighed}.items():
            memory, line = ranked.memory, lines.get(id)
            if layer and line:
                reason, says = self._unfitted(layer, line)
            elif rule.name == "continuity" and memory not in in_line:
                if memory.kind != "handoff":
                    continue  # a session that left nothing open has its line among the sessions
                reason, says = "closed", "a later handoff says where things stand"
            else:
                reason, says = self._unsaid(rule, ranked)
            text = line.text if line else self._line(rule, ranked)
            yield Entry(
                memory=memory,
                layer=rule.name,
                score=ranked.score,
                tokens=self.heard.count(text),
                why=ranked.why,
                line=text,
                reason=reason,
                says=says,
            )

    def _unsaid(self, rule: LayerRule, ranked: Ranked) -> tuple[str, str]:
        """Why something was not even to be fitted."""
        memory, needed = ranked.memory, self._least(rule)
        if ranked.score < needed:
            part = "the threshold" if needed == self.threshold else f"{FAR:.0%} of the best"
            return "threshold", f"its score of {ranked.score:.3f} is below {needed:.3f}, {part}"
        if memory.id in self.heard.known:
            own = memory.session and memory.session == self.moment.session
            return "shown", "it came up in this session itself" if own else "already shown in this context window"
        if asleep(memory):
            return "unsure", f"not sure enough: {memory.confidence:.2f}, and below {CERTAIN} it must be asked for"
        if rule.name == "rules" and memory.trust != "user":
            return "trust", "only what the user said becomes a rule"
        if max(memory.created, memory.confirmed) <= self.heard.since:
            return "older", "it was there when this context window began"
        said = (line.ranked.memory for lines in self.chosen.values() for line in lines)
        other = next((each for each in said if retells(each, memory) or retells(memory, each)), None)
        if other is not None:
            return "retold", f"{other.id} says the same"
        return "limit", _at_most(rule.limit)

    def _unfitted(self, layer: Layer, line: Line) -> tuple[str, str]:
        """Why something that was worth saying found no room: the nearest of all borders that it would pass."""
        heard, mine = self.heard, self.chosen.get(layer.name, ())
        cost, text = min((heard.count(text), text) for text in (line.text, *line.shorter))
        needs = f"it needs {cost} tokens"
        if layer.cap <= 0:
            return "off", f"{layer.name} is switched off: its cap is 0"
        if len(mine) >= layer.limit:
            return "limit", _at_most(layer.limit)
        if heard.cap and heard.cap.size(f"{heard.fitted.text}\n{text}") > heard.cap.most:
            return "host", f"the host takes at most {heard.cap.most:,} {heard.cap.counts} in one output"
        spent = sum(heard.count(each.text) for each in mine)
        among = sum(heard.count(each.text) for each in mine if each.group == line.group)
        # Unused tokens flow to whoever needs them: a border that was passed already is none.
        if line.group in layer.groups and among <= layer.groups[line.group] < among + cost:
            had = f"{line.group} has {among} of its {layer.groups[line.group]} in {layer.name}"
            return "group", f"{needs}, {had}, and others left none over"
        if len(self.recipe.layers) > 1 and spent <= layer.cap < spent + cost:
            return "cap", f"{needs}, {layer.name} has {spent} of its {layer.cap}, and others left none over"
        return "room", f"no room in the budget: {cost} tokens more would pass {SHARE}% of {self.got.budget}"

    def _least(self, rule: LayerRule) -> float:
        """The score from which on a layer says something; where a project was left is always worth saying."""
        found = self.heard.found.get(rule.kinds, ())
        return 0.0 if rule.name in LASTING else least(found, threshold=self.threshold, moment=self.moment.name)

    def _line(self, rule: LayerRule, ranked: Ranked) -> str:
        moment = self.moment
        return render.versions(ranked, moment=moment.name, layer=rule.name, now=self.now, form=moment.form)[0]


def _shared(lists: Sequence[Sequence[Entry]], *, most: int) -> list[list[Entry]]:
    """Of each list its first, as many as there are places when all take turns."""
    turns = chain.from_iterable(zip_longest(*([(at, each) for each in some] for at, some in enumerate(lists))))
    taken = list(islice(filter(None, turns), most))
    return [[each for at, each in taken if at == place] for place in range(len(lists))]


def _score(ranked: Ranked) -> float:
    return ranked.score


def _at_most(limit: int) -> str:
    return f"this part shows at most {limit}"
