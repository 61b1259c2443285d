"""How long planning takes for a large project, and how many duplicates are left: 20,000 memories, generated.

python bench/tidy.py [--memories 20000]
"""

from __future__ import annotations

import argparse
import random
import resource
import time

from foreword.audit import MemoryChange, PlanContext
from foreword.maintenance import contradictions, dedupe, stale
from foreword.maintenance.dedupe import MIN_SIMILARITY, alike
from foreword.models import Memory, Project

HERE = Project(key="here", name="here", root="/here")
KINDS = ("decision", "failure", "learning", "observation", "preference", "pattern", "change", "summary")
SAMPLE = 60  # memories that are compared with all others, to count duplicates


def generated(many: int, *, seed: int = 5) -> list[Memory]:
    """Memories as a project has them: words as rare as words are, and one in four said before, with small changes."""
    rng = random.Random(seed)
    words = [f"{rng.choice('bcdfgklmnprst')}{rng.choice('aeiou')}{rng.choice('bdklmnrst')}{number:x}".translate(LETTERS)
             for number in range(6_000)]  # fmt: skip
    weights = [1 / (place + 3) for place in range(len(words))]
    made: list[Memory] = []
    for number in range(many):
        kind = rng.choice(KINDS)
        if made and rng.random() < 0.25:
            before = rng.choice(made)
            kind, title, body = before.kind, again(before.title, rng), before.body
        else:
            title = " ".join(rng.choices(words, weights, k=rng.randint(5, 12))).capitalize()
            body = " ".join(rng.choices(words, weights, k=rng.randint(10, 60))) if rng.random() < 0.5 else ""
        id = f"{kind[:3]}-{number:06}"
        files = (f"src/{rng.choice(words[:300])}.py",)
        made.append(
            Memory(kind, title, body, id=id, uid=id, scope=HERE.scope, project=HERE.key, session=f"s{number // 40}",
                   files=files, created=float(number), confirmed=float(number))
        )  # fmt: skip
    return made


LETTERS = str.maketrans("0123456789", "ghijklmnop")  # a number would tell two memories apart


def again(title: str, rng: random.Random) -> str:
    """The same, as it is said another time."""
    return rng.choice((title, title.lower(), f"{title}.", f"the {title}", f"{title}, please"))


def left(memories: list[Memory], *, seed: int = 7) -> float:
    """The share of active memories of which another one of the same kind says the same, by a sample."""
    active = [memory for memory in memories if memory.status == "active"]
    lasting = [memory for memory in active if memory.kind in dedupe.LASTING]
    sample = random.Random(seed).sample(lasting, min(SAMPLE, len(lasting)))
    twice = [
        one for one in sample if any(two.id != one.id and two.kind == one.kind and alike(one, two) >= MIN_SIMILARITY
                                     for two in lasting if abs(len(two.title) - len(one.title)) < 12)
    ]  # fmt: skip
    return len(twice) / max(1, len(sample))


def carried_out(memories: list[Memory], planned: tuple[MemoryChange, ...]) -> list[Memory]:
    now = {memory.id: memory for memory in memories}
    for memory_change in planned:
        now.update((after.id, after) for _, after in memory_change.changed)
    return list(now.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=20_000)
    memories = generated(parser.parse_args().memories)
    about = PlanContext(now=1e6, exists=lambda _file, _function: True)
    print(f"{len(memories):,} memories, {left(memories):.1%} said twice")
    for planner in (dedupe.plan, contradictions.plan, stale.plan):
        began = time.process_time()
        planned = planner(tuple(memories), about=about)
        took = time.process_time() - began
        memories = carried_out(memories, planned)
        print(f"{planner.__module__.rpartition('.')[2]:<15} {took:6.2f} s of the processor, {len(planned):,} planned")
    again_planned = dedupe.plan(tuple(memories), about=about)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{left(memories):.1%} said twice; planned again: {len(again_planned)}; peak {peak} MB")


if __name__ == "__main__":
    main()
