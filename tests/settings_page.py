"""Write the page docs/settings.md from the built-in settings, recipes and ledgers."""

from __future__ import annotations

from foreword.config.settings import SETTINGS, default_shown, range_shown
from foreword.layout import LAYOUTS, MOST_ITEMS, MOST_TOKENS, MOST_TOTAL, window_totals


def settings_page() -> str:
    """Return the page docs/settings.md, byte for byte."""
    rows = [
        f"| `{each.name}` | {default_shown(each)} | {each.unit or '-'} | {range_shown(each)} | {each.what} "
        f"| `{each.env}` |"
        for each in SETTINGS
    ]
    recipe_rows = [
        f"| {trigger} | {recipe.budget} | {layer.name} | {layer.cap} | {layer.limit} | {layer.limit_away or '-'} "
        f"| {', '.join(f'{name} {cap}' for name, cap in layer.groups.items()) or '-'} | {', '.join(layer.kinds)} |"
        for trigger, recipe in LAYOUTS.items()
        for layer in recipe.layers
    ]
    return _PAGE.format(
        rows="\n".join(rows),
        recipe_rows="\n".join(recipe_rows),
        ledger_rows="\n".join(f"| {name} | {tokens} |" for name, tokens in window_totals(LAYOUTS).items()),
        most_total=MOST_TOTAL,
        most_tokens=MOST_TOKENS,
        most_items=MOST_ITEMS,
    )


_PAGE = """\
# Settings

Everything has a default that works; change only what you must. Settings live in `config.toml` in your Foreword home
(`~/.foreword`, or the folder that `FOREWORD_HOME` names). `foreword config` shows and changes them and leaves your
comments alone.

The environment counts before the file, and the file before the default. A switch in the environment is `1` or `0`,
`true` or `false`, `yes` or `no`, `on` or `off`; a list has commas between its entries. What is broken never stops
Foreword: a wrong value means the default for that one setting, a file that is not TOML means the defaults for all, and
`foreword doctor` gives the file and the line.

| setting | default | unit | may be | what it does | environment |
|---|---|---|---|---|---|
{rows}

Two more names are read from the environment alone: `FOREWORD_HOME`, the folder that holds everything, and
`FOREWORD_OFF=1`, which neither captures nor injects.

## Meaning

A question may find what shares no word with it. That is off, and needs an extra: `pip install 'foreword[meaning]'`.

```sh
foreword config set meaning local     # a table on this disk; nothing leaves the machine

foreword config set meaning remote    # or an endpoint of yours: what is remembered and asked goes there, redacted
foreword config set meaning_endpoint http://127.0.0.1:11434/v1
foreword config set meaning_model all-minilm
foreword config set meaning_key_env OPENAI_API_KEY    # the variable's name, if it wants a key; never the key
```

What was remembered before is caught up. A prompt waits a quarter of its deadline for an endpoint, then goes without; an
endpoint that fails is left to rest, and everything is kept and found by its words meanwhile. In memory there are at
most 64 MB of vectors, of the projects that were asked for last and, of one with more, the newest.

## Model

A model may improve what is written about a session. That is off: [model](model.md) says what it sends where, what it
costs, and how to turn it on.

## Recipes

For each moment a budget in tokens, frame and headings included, and its layers in order. `cap` is what a layer gets
before another gets more, `limit` the most memories in it, `limit_away` the same while the worker is away. Some caps are
divided by scope. What a layer or a scope does not use goes to those that need it.

| moment | budget | layer | cap | limit | limit_away | by scope | kinds |
|---|---|---|---|---|---|---|---|
{recipe_rows}

Every number can be changed, from 0 to {most_tokens} for tokens and from 0 to {most_items} for limits. Caps that you do
not name grow and shrink with their budget, scopes with their cap, and compaction follows session_start at one half.
A budget of 0 turns that moment off.

```toml
[recipes.session_start]
budget = 1500

[recipes.session_start.rules]
cap = 400
project = 250

[recipes.session_start.sessions]
limit = 2
```

A ledger counts what one context window was given; it begins again at a start, a clear and a compaction. `together` is
what session start and questions may have between them. A block that would pass its total is cut to fit, and then there
is silence; searching and fetching are free. Totals that you do not name grow and shrink with the budgets.

| in `[recipes.ledger]` | tokens in one window |
|---|---|
{ledger_rows}

Each may be from 0 to {most_total}.

## Synonyms

`synonyms.toml` in the same folder gives a word the other words that a search for it may find. Your line takes the
place of ours for that word, and an empty list takes ours away.

```toml
deploy = ["ci", "pipeline", "helm"]
test = []
```
"""

if __name__ == "__main__":
    print(settings_page(), end="")
