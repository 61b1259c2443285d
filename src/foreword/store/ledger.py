"""What models were asked and what it cost: a call in, calls and their sum out. The SQL of the ledger."""

from __future__ import annotations

from dataclasses import dataclass

from foreword.store.reading import Reader

ASKED = "asked"  # the outcome of a call that has not ended, or that a crash ended: its estimate counts


@dataclass(frozen=True)
class Spending:
    """One call of a model, made or refused; its number is given by the store."""

    at: float
    provider: str
    model: str
    purpose: str
    session: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    ms: float = 0.0
    outcome: str = ASKED  # asked, ok, failed:why, refused:cap or paused
    number: int = 0


PUT = """INSERT OR REPLACE INTO ledger
 (at, provider, model, purpose, session, tokens_in, tokens_out, ms, outcome, number)
 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, 0))"""


class LedgerReader(Reader):
    """The questions about models, of one read-only connection."""

    def spendings(self, since: float = 0.0, limit: int = 20) -> tuple[Spending, ...]:
        """Return the calls of models from then on, newest first."""
        rows = self._all(
            """SELECT at, provider, model, purpose, session, tokens_in, tokens_out, ms, outcome, number FROM ledger
            WHERE at >= ? ORDER BY at DESC, number DESC LIMIT ?""",
            (since, limit),
        )
        return tuple(Spending(*row) for row in rows)

    def spent_on_models(self, since: float) -> int:
        """Return the tokens that models were given and gave from then on."""
        rows = self._all("SELECT ifnull(sum(tokens_in + tokens_out), 0) FROM ledger WHERE at >= ?", (since,))
        return int(rows[0][0])
