"""Write the page docs/settings.md from the built-in settings, layout and window budget."""

from __future__ import annotations

from foreword.config import SETTINGS, default_shown, range_shown
from foreword.layout import LAYOUT, MOST_ITEMS, MOST_TOKENS, MOST_TOTAL, window_budget


def settings_page() -> str:
    """Return the page docs/settings.md, byte for byte."""
    rows = [
        f"| `{each.name}` | {default_shown(each)} | {each.unit or '-'} | {range_shown(each)} | {each.what} "
        f"| `{each.env}` |"
        for each in SETTINGS
    ]
    layout_rows = [
        f"| {trigger} | {each.budget} | {layer.name} | {layer.cap} | {layer.limit} "
        f"| {', '.join(f'{name} {cap}' for name, cap in layer.groups.items()) or '-'} | {', '.join(layer.kinds)} |"
        for trigger, each in LAYOUT.items()
        for layer in each.layers
    ]
    layout_rows += [
        f"| {trigger} | {each.budget} | - | - | - | - | - |" for trigger, each in LAYOUT.items() if not each.layers
    ]
    return _PAGE.format(
        rows="\n".join(rows),
        layout_rows="\n".join(layout_rows),
        window_rows="\n".join(f"| {name} | {tokens} |" for name, tokens in window_budget(LAYOUT).items()),
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
`foreword doctor` says which.

| setting | default | unit | may be | what it does | environment |
|---|---|---|---|---|---|
{rows}

Two more names are read from the environment alone: `FOREWORD_HOME`, the folder that holds everything, and
`FOREWORD_OFF=1`, which neither captures nor injects.

## Embeddings

With embeddings a search may find what shares no word with it. They are off, and need an extra:
`pip install 'foreword[embeddings]'`.

```sh
foreword config set embeddings local     # a table on this disk; nothing leaves the machine
```

Memories from before are embedded in the background.

## Model

A model may improve the summary of a session. It is off: [model](model.md) says what it sends where, what it costs, and
how to turn it on.

## Layout

Each trigger has a budget in tokens, frame and headings included, and its layers in order. `cap` is what a layer gets
before another gets more, and `limit` the maximum number of memories in it. Some caps are divided by scope. What a layer
or a scope does not use goes to those that need it. `tool` is one line around a tool use.

| trigger | budget | layer | cap | limit | by scope | kinds |
|---|---|---|---|---|---|---|
{layout_rows}

Every number can be changed, from 0 to {most_tokens} for tokens and from 0 to {most_items} for limits. Caps that you do
not name grow and shrink with their budget, scopes with their cap, and compaction follows session_start at one half.
A budget of 0 turns that trigger off.

```toml
[layout.session_start]
budget = 1500

[layout.session_start.rules]
cap = 400
project = 250

[layout.session_start.sessions]
limit = 2
```

The window budget limits what one context window gets in all; it is reset by a start, a clear and a compaction.
A block beyond the budget is cut to fit, and then nothing more is injected; searching and fetching are free.
Totals that you do not name grow and shrink with the budgets.

| in `[layout.window]` | tokens in one window |
|---|---|
{window_rows}

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
