"""What projects are called: by their names, and apart from each other where they share one."""

from __future__ import annotations

from foreword.models import KnownProject
from foreword.store.projects import names


def named(*projects: tuple[str, str, str]) -> dict[str, str]:
    known = {key: KnownProject(key, name, alias_of=alias) for key, name, alias in projects}
    name = names(known)
    return {key: name(key) for key in known}


def test_a_name_that_several_share_is_told_with_the_end_of_its_key():
    alone = named(("git.example/acme/shop", "shop", ""), ("dir:/harbour/pier", "", ""))
    assert list(alone.values()) == ["shop", "pier"]
    both = named(("dir:/a/shop", "shop", ""), ("dir:/b/shop", "shop", ""))
    assert list(both.values()) == ["shop (a/shop)", "shop (b/shop)"]
    # What counts as another needs no telling apart from it.
    assert named(("dir:/a/shop", "shop", ""), ("dir:/b/shop", "shop", "dir:/a/shop"))["dir:/a/shop"] == "shop"
    assert names({})("dir:/far/away") == "away"
    assert names({}, also=["dir:/far/away", "dir:/near/away"])("dir:/far/away") == "away (far/away)"
