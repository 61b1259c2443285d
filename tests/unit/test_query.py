"""query: what a moment looks for, whatever its prompt: what was said, what it may be called, what is being done."""

import json

from hypothesis import given
from hypothesis import strategies as st

from foreword.models import Project, Trigger
from foreword.recall.query import MOST_TOUCHED, query_of
from foreword.terms import STOP_WORDS, terms
from tests.tables import table

HERE = Project(key="here", name="here", root="/srv/shop")


def a_query(prompt="", *, synonyms=None, **more):
    return query_of(Trigger(name="prompt", project=HERE, prompt=prompt, **more), synonyms=synonyms or {})


def test_a_query_holds_words_files_functions_and_task(tmp_path):
    # What was said is told from what it may be called.
    query = a_query("Deploy the auth pipeline", synonyms={"deploy": ("ci", "pipeline"), "auth": ("login", "ci")})
    assert query.terms == ("deploy", "auth", "pipeline")
    assert query.synonyms == {"ci": "deploy", "login": "auth"}
    # A prompt brings its files functions and task.
    query = a_query("Fix price_basket() in /srv/shop/src/pricing.py:44, it fails for vouchers")
    assert query.files == ("src/pricing.py",)
    assert query.functions == ("price_basket",)
    assert query.task == "debugging"
    assert {"price", "basket", "pricing", "vouchers"} <= set(query.terms)
    # What is being worked on goes along up to a limit.
    files = tuple(f"f{n}.py" for n in range(80))
    query = a_query("again, please", touched=files, recent=("tool_failure",))
    assert query.touched == files[:MOST_TOUCHED]
    assert query.task == "debugging"
    # A session start has no words.
    query = query_of(Trigger(name="session_start", project=HERE, touched=("a.py",)))
    assert (query.terms, query.files, query.functions, query.task, query.touched) == ((), (), (), "", ("a.py",))
    # Who searches for a slash command finds it.
    trigger = Trigger(name="question", project=HERE, prompt="/compact")
    assert query_of(trigger).terms == ("compact",)
    # Languages that are known are not looked for again.
    (tmp_path / "go.mod").touch()
    project = Project(key="here", name="here", root=str(tmp_path))
    known = Trigger(name="prompt", project=project, languages=("rust",))
    assert query_of(known).scopes == ("project:here", "language:rust", "universal")
    assert query_of(Trigger(name="prompt", project=project)).scopes == ("project:here", "language:go", "universal")


@table(
    ("prompt", "wanted"),
    [
        ("/compact", ()),
        (" /clear\n", ()),
        ("/compact keep what we said about the transport", ()),
        ("/model opus", ()),
        ("/foreword:search checkout transport", ()),  # the agent searches itself, with these words
        ("/Foreword:handoff vouchers", ()),
        ("/hey", ()),
        ("<task-notification>\n<task-id>b1</task-id>\nthe transport is done", ()),
        ("<div> in the transport", ("div", "transport")),
        ("/fix-issue\n\nthe transport hangs", ("transport", "hangs")),
        ("/review:deep vouchers", ("vouchers",)),
        ("/srv/shop/pricing.py hangs", ("srv", "shop", "pricing", "py", "hangs")),
        ("/pricing.py", ("pricing", "py")),
        ("/ transport", ("transport",)),
        ("run /compact later", ("run", "compact", "later")),
    ],
)
def test_the_name_of_a_slash_command_is_no_topic(prompt, wanted):
    assert set(a_query(prompt).terms) == set(terms(" ".join(wanted)))


@given(st.text(max_size=300), st.text(max_size=20))
def test_no_prompt_and_no_root_raises(prompt, root):
    trigger = Trigger(name="prompt", project=Project(key="k", name="n", root=root), prompt=prompt, languages=())
    assert query_of(trigger) == query_of(trigger)


@table("corpus", ["devmem", "replay/aider", "replay/datasette", "replay/httpx", "replay/litestream"])
def test_real_prompts_have_a_few_significant_terms(shared, corpus):
    lines = (shared / "bench" / corpus / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    for prompt in (json.loads(line)["prompt"] for line in lines):
        found = terms(prompt)
        assert found or not any(word.isalnum() for word in prompt.split())
        assert len(found) <= 64
        assert not STOP_WORDS.intersection(found)
