"""Bytes -> where tokens of known formats stand in them, each with the name of its format. Light, and without `re`.

A token is a trigger, what every token of the format begins with, and the run of characters behind it; some have a run
before it too. A run is read once: an attempt that fails because of what its run holds goes on behind the run.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Span = tuple[int, int, str]  # from, to, what stands there

_UPPER = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LOWER = b"abcdefghijklmnopqrstuvwxyz"
_DIGITS = b"0123456789"
_ALNUM = _UPPER + _LOWER + _DIGITS
WORD = _ALNUM + b"_"
CLASSES = {
    "digit": _DIGITS,
    "hex": _DIGITS + b"abcdefABCDEF",
    "upper": _UPPER + _DIGITS,
    "alnum": _ALNUM,
    "word": WORD,
    "dash": WORD + b"-",
    "dots": WORD + b"-.",
    "base64": WORD + b"-+/=",
    "url": WORD + b"-.+%~=:",
    "path": WORD + b"-.%/",
    "sums": WORD + b"-.+%/=$!,~:",
    "any": WORD + b"-.+%/=$!,~:@",
}

# name, triggers, the least that follows, of which class, what else it takes, where it may begin: anywhere (""), at the
# beginning of a word ("word"), or behind a run of its own ("hex 32"). A new format is a new line; where one holds
# another, the longer comes first. Constants alone: the compiler folds them into one, which a hook loads in 0.05 ms.
FORMATS = (
    ("jwt", "eyJ", 17, "dots", "jwt", ""),
    ("grafana-key", "eyJrIjoi", 40, "base64", "", ""),
    # clouds
    ("aws-key", "AKIA ASIA ABIA ACCA", 16, "upper", "", "word"),
    ("google-key", "AIza", 35, "dash", "", "word"),
    ("google-key", "AQ.Ab8", 40, "dash", "", "word"),
    ("google-secret", "GOCSPX-", 24, "dash", "", ""),
    ("google-token", "ya29.", 20, "dots", "random", "word"),
    ("google-token", "1//0", 30, "dash", "random", "word"),
    ("azure-secret", "8Q~ 7Q~", 31, "url", "", "alnum 3"),
    ("azure-key", "JQQJ99", 20, "alnum", "", "alnum 52"),
    ("azure-sas", "sig=", 40, "sums", "random", "word"),
    ("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", 64, "hex", "", ""),
    ("cloudflare-key", "v1.0-", 100, "dash", "random", "word"),
    ("cloudflare-token", "cfut_ cfat_ cfk_", 40, "word", "random", "word"),
    ("heroku-key", "HRKU-", 36, "dash", "", ""),
    ("alibaba-key", "LTAI", 16, "alnum", "random", "word"),
    ("tencent-key", "AKID", 32, "alnum", "random", "word"),
    ("yandex-token", "AQVN y0__ y0_A", 35, "dash", "random", "word"),
    ("flyio-token", "fm1r_ fm1a_ fm2_ fo1_", 40, "base64", "", "word"),
    ("vercel-token", "vcp_ vca_ vci_ vcr_ vck_", 24, "alnum", "random", "word"),
    ("netlify-token", "nfp_ nfo_ nfc_ nfu_ nfb_", 36, "word", "random", "word"),
    ("render-key", "rnd_", 28, "alnum", "random", "word"),
    ("supabase-key", "sbp_", 40, "word", "random", "word"),
    ("supabase-key", "sb_secret_", 24, "dash", "", ""),
    ("planetscale-token", "pscale_tkn_ pscale_oauth_ pscale_pw_", 32, "dots", "", ""),
    ("neon-key", "napi_", 40, "word", "random", "word"),
    ("openshift-token", "sha256~", 43, "dash", "", "word"),
    ("kubernetes-token", "SWMTKN-1-", 40, "dash", "", ""),
    ("kubernetes-token", "K10", 64, "sums", "random", "word"),
    ("tailscale-key", "tskey-", 24, "dash", "random", "word"),
    ("vault-token", "hvs. hvb. hvr.", 24, "dash", "random", "word"),
    ("terraform-token", ".atlasv1.", 60, "dash", "", "alnum 14"),
    ("pulumi-token", "pul-", 40, "hex", "", "word"),
    ("databricks-token", "dapi", 32, "hex", "", "word"),
    ("doppler-token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", 40, "dots", "", "word"),
    ("1password-token", "ops_eyJ", 100, "base64", "", ""),
    ("1password-key", "A3-", 30, "dash", "groups", "word"),
    ("age-key", "AGE-SECRET-KEY-1", 50, "alnum", "", ""),
    ("age-key", "AGE-PLUGIN-", 40, "dash", "", ""),
    # version control
    ("github-token", "ghp_ gho_ ghu_ ghr_", 36, "alnum", "", ""),
    ("github-token", "ghs_", 36, "dots", "random", ""),
    ("github-token", "github_pat_", 30, "word", "", ""),
    (
        "gitlab-token",
        "glpat- gldt- glrt- glrtr- glft- glsoat- glcbt- glptt- glimt- glagent- gloas-",
        20,
        "dots",
        "",
        "",
    ),
    ("gitlab-token", "glffct- glwt- GR1348941", 20, "dots", "", ""),
    ("atlassian-token", "ATATT3 ATCTT3 ATSTT3", 40, "base64", "", ""),
    ("bitbucket-token", "ATBB", 28, "alnum", "random", "word"),
    ("bitbucket-token", "BBDC-", 40, "base64", "", ""),
    ("sourcegraph-token", "sgp_ sgd_", 40, "word", "random", "word"),
    ("circleci-token", "CCIPAT_ CCIPRJ_", 40, "word", "", ""),
    ("buildkite-token", "bkua_ bkct_", 40, "alnum", "", "word"),
    ("sonar-token", "sqp_ squ_ sqa_", 40, "hex", "", "word"),
    # packages
    ("npm-token", "npm_", 36, "alnum", "", ""),
    ("pypi-token", "pypi-AgE", 32, "dash", "", ""),
    ("rubygems-key", "rubygems_", 48, "hex", "", ""),
    ("crates-token", "cio", 32, "alnum", "random", "word"),
    ("nuget-key", "oy2", 43, "alnum", "random", "word"),
    ("docker-token", "dckr_pat_ dckr_oat_", 20, "dash", "", ""),
    ("artifactory-token", "AKCp cmVmdGtu", 50, "alnum", "random", "word"),
    ("clojars-token", "CLOJARS_", 60, "hex", "", ""),
    ("packagist-token", "packagist_ack_ packagist_uut_ packagist_out_", 40, "word", "", ""),
    # chat
    ("slack-webhook", "hooks.slack.com", 13, "path", "slack", ""),
    ("slack-token", "xoxa- xoxb- xoxc- xoxe- xoxp- xoxr- xoxs-", 15, "dash", "", ""),
    ("slack-token", "xoxo-", 15, "dash", "digit first", ""),
    ("slack-token", "xoxd-", 15, "path", "", ""),
    ("slack-token", "xapp-", 15, "dash", "slack app", ""),
    ("discord-token", "MD MT Mj Mz ND NT Nj Nz OD OT Oj Oz", 55, "dots", "discord", "word"),
    ("discord-webhook", "discord.com discordapp.com", 40, "path", "webhook", ""),
    ("telegram-token", ":AA", 32, "dash", "", "digit 8"),
    ("teams-webhook", "webhook.office.com outlook.office.com", 40, "any", "webhook", ""),
    ("zapier-webhook", "hooks.zapier.com", 20, "path", "", ""),
    # payment
    ("stripe-key", "sk_live_ rk_live_ sk_test_ rk_test_", 16, "alnum", "random", "word"),
    ("stripe-key", "whsec_", 24, "base64", "", ""),
    ("square-token", "sq0atp- sq0csp-", 20, "dash", "", ""),
    ("square-token", "EAAA", 56, "dash", "short", "word"),
    ("meta-token", "EAA", 60, "alnum", "short", "word"),
    ("braintree-token", "access_token$production$ access_token$sandbox$", 40, "sums", "", ""),
    ("shopify-token", "shpat_ shpca_ shppa_ shpss_ shpua_", 32, "hex", "", ""),
    ("razorpay-key", "rzp_live_ rzp_test_", 14, "alnum", "", ""),
    ("plaid-token", "access-production- access-sandbox- access-development-", 30, "dash", "random", ""),
    ("adyen-key", "AQE", 80, "sums", "short", "word"),
    ("flutterwave-key", "FLWSECK-", 24, "dash", "", ""),
    ("flutterwave-key", "FLWSECK_TEST-", 12, "dash", "", ""),
    ("live-key", "live_", 30, "alnum", "random", "word"),
    # mail and short messages
    ("sendgrid-key", "SG.", 49, "dots", "sendgrid", "word"),
    ("mailgun-key", "key-", 32, "hex", "random", "word"),
    ("mailchimp-key", "-us", 1, "digit", "", "hex 32"),
    ("mandrill-key", "md-", 22, "dash", "random", "word"),
    ("twilio-key", "SK", 32, "hex", "random", "word"),
    ("brevo-key", "xkeysib- xsmtpsib-", 64, "dash", "", ""),
    ("resend-key", "re_", 30, "word", "resend", "word"),
    # monitoring
    ("newrelic-key", "NRAK- NRJS- NRII- NRRA- NRAA- NRIQ- NRSP-", 19, "dash", "random", "word"),
    ("newrelic-key", "NRAL", 0, "alnum", "", "hex 36"),
    ("sentry-token", "sntrys_ sntryu_ sntryi_", 40, "base64", "", ""),
    ("grafana-token", "glc_", 32, "base64", "random", "word"),
    ("grafana-token", "glsa_", 32, "word", "", ""),
    ("dynatrace-token", "dt0c01. dt0s01. dt0s02. dt0s16.", 60, "dots", "", "word"),
    ("honeycomb-key", "hcaik_ hcbik_ hccik_ hcamk_", 40, "alnum", "", "word"),
    ("posthog-key", "phx_", 40, "alnum", "random", "word"),
    ("launchdarkly-key", "sdk- mob- api-", 36, "dash", "uuid", "word"),
    ("axiom-token", "xaat- xapt-", 36, "dash", "uuid", "word"),
    ("prefect-key", "pnu_ pnb_", 36, "alnum", "random", "word"),
    # models
    ("anthropic-key", "sk-ant-", 21, "dash", "anthropic", ""),
    ("openrouter-key", "sk-or-", 32, "dash", "", ""),
    ("openai-key", "sk-", 20, "dash", "openai", "word"),
    ("openai-key", "sess-", 40, "alnum", "random", "word"),
    ("huggingface-token", "hf_", 30, "alnum", "", ""),
    ("huggingface-token", "api_org_", 30, "alnum", "random", ""),
    ("groq-key", "gsk_", 40, "alnum", "", ""),
    ("perplexity-key", "pplx-", 40, "alnum", "random", "word"),
    ("xai-key", "xai-", 60, "alnum", "random", "word"),
    ("replicate-token", "r8_", 36, "alnum", "random", "word"),
    ("fireworks-key", "fw_ fpk_", 22, "alnum", "random", "word"),
    ("cerebras-key", "csk-", 40, "alnum", "random", "word"),
    ("nvidia-key", "nvapi-", 50, "dash", "random", "word"),
    ("elevenlabs-key", "sk_", 40, "alnum", "random", "word"),
    ("voyage-key", "pa-", 40, "dash", "openai", "word"),
    ("jina-key", "jina_", 40, "dash", "random", "word"),
    ("tavily-key", "tvly-", 28, "dash", "random", "word"),
    ("langsmith-key", "lsv2_pt_ lsv2_sk_", 32, "word", "", ""),
    ("wandb-key", "wandb_v1_", 32, "word", "", ""),
    ("pinecone-key", "pcsk_", 50, "word", "", ""),
    ("e2b-key", "e2b_", 40, "hex", "", "word"),
    ("modal-token", "ak- as-", 22, "alnum", "random", "word"),
    ("runpod-key", "rpa_", 40, "alnum", "random", "word"),
    ("together-key", "tgp_v1_", 40, "dash", "", ""),
    ("firecrawl-key", "fc-", 32, "hex", "random", "word"),
    # tools
    ("linear-key", "lin_api_ lin_oauth_", 32, "alnum", "", ""),
    ("notion-token", "ntn_", 40, "alnum", "random", "word"),
    ("notion-token", "secret_", 43, "alnum", "random", "word"),
    ("figma-token", "figd_ figo_ figu_", 36, "dash", "", "word"),
    ("postman-key", "PMAK-", 50, "dash", "", ""),
    ("airtable-token", "pat", 78, "dots", "airtable", "word"),
    ("hubspot-token", "pat-na1- pat-na2- pat-eu1-", 32, "dash", "", ""),
    ("mapbox-token", "sk.eyJ", 40, "dots", "", "word"),
    ("dropbox-token", "sl.", 60, "dash", "random", "word"),
    ("typeform-token", "tfp_", 40, "dash", "random", "word"),
    ("contentful-token", "CFPAT-", 40, "dash", "", ""),
    ("salesforce-token", "00D", 90, "sums", "salesforce", "word"),
    ("adafruit-key", "aio_", 28, "alnum", "random", "word"),
    ("easypost-key", "EZAK EZTK", 50, "alnum", "random", "word"),
    ("shippo-token", "shippo_live_ shippo_test_", 40, "hex", "", ""),
    ("duffel-token", "duffel_live_ duffel_test_", 40, "dash", "", ""),
    ("readme-key", "rdme_", 60, "alnum", "", "word"),
    ("infracost-key", "ico-", 32, "alnum", "random", "word"),
    ("octopus-key", "API-", 25, "upper", "random", "word"),
    ("nylas-key", "nyk_v0_", 40, "word", "", ""),
    ("password-hash", "$2a$ $2b$ $2y$ $argon2i$ $argon2id$ $argon2d$", 50, "sums", "", ""),
    ("password-hash", "$6$ $5$ $y$", 60, "sums", "random", ""),
)
SHORTEST = 20  # an AWS key; a word that is shorter holds no token

_TRIGGERS = " ".join([row[1] for row in FORMATS]).encode().split()
_ROWS = [row for row in FORMATS for _ in range(row[1].count(" ") + 1)]
# Every character that a token may hold, and a space for any other: what is left of a text are its words.
_OTHERS = bytes(range(256)).translate(None, CLASSES["any"] + b"\\")
_WORDS = bytes.maketrans(_OTHERS, b" " * len(_OTHERS))
_SMALL = bytes(range(256)).translate(None, _UPPER + _DIGITS)


def tokens(raw: bytes) -> list[Span]:
    """Where tokens stand, in order; of two that overlap, the one whose format comes first in the table."""
    # A long word with a digit or a capital, each once: one percent of a source, in which 250 triggers are soon found.
    # (Of 20 random small letters and digits, one in 700 has neither; every format of those has 30 or more.)
    found = {word for word in raw.translate(_WORDS).split() if len(word) >= SHORTEST}
    words = b" ".join([word for word in found if word.translate(None, _SMALL)])
    if not words:
        return []
    spans: list[Span] = []
    for number in [number for number, trigger in enumerate(_TRIGGERS) if trigger in words]:
        spans += _tokens_of(raw, _TRIGGERS[number], _ROWS[number])
    return _apart(spans)


def replaced(raw: bytes, spans: list[Span]) -> bytes:
    """The bytes with a mark for each span; they must be in order and apart."""
    kept: list[bytes] = []
    done = 0
    for start, end, name in spans:
        kept += (raw[done:start], f"[redacted:{name}]".encode())
        done = end
    return b"".join(kept) + raw[done:]


def _apart(found: list[Span]) -> list[Span]:
    if len(found) < 2:
        return found
    order = {name: number for number, name in reversed(list(enumerate(row[0] for row in FORMATS)))}
    apart: list[Span] = []
    for span in sorted(found, key=lambda each: (each[0], order[each[2]], -each[1])):
        if not apart or span[0] >= apart[-1][1]:
            apart.append(span)
        elif span[1] > apart[-1][1]:  # the rest of one that began within another
            start, _, name = apart[-1]
            apart[-1] = start, span[1], name
    return apart


def _tokens_of(raw: bytes, trigger: bytes, row: tuple[str, str, int, str, str, str]) -> Iterator[Span]:
    name, _, least, kind, needs, begins = row
    behind, _, count = begins.partition(" ")
    at = raw.find(trigger)
    while at >= 0:
        start, after = at, at + len(trigger)
        if count:
            start = at - int(count)
            fits = start >= 0 and not raw[start:at].translate(None, CLASSES[behind])
        else:
            fits = not (begins and within_word(raw, at))
        if fits:
            end = _run(raw, after, kind)
            body = raw[after:end]
            if len(body) >= least:
                if not needs or _NEEDS[needs](body):
                    end = _run(raw, end, "word")
                    yield start, end, name
                after = end
        at = raw.find(trigger, after)


def _run(raw: bytes, at: int, kind: str) -> int:
    """Where the run of characters of this class ends; a slash may be written as JSON or a query may write it."""
    chars = CLASSES[kind]
    size = 256
    while True:
        part = raw[at : at + size]
        rest = len(part.lstrip(chars))
        at += len(part) - rest
        if not rest and len(part) == size:
            size = min(size * 4, 1 << 16)
            continue
        if b"/" in chars and raw[at : at + 2] == b"\\/":
            at += 2
            continue
        while at and raw[at - 1 : at] in (b".", b":", b",", b"%", b"!", b"~") and kind != "digit":
            at -= 1  # the end of a sentence
        return at


_HEX = CLASSES["hex"]
_ENDS_AN_ESCAPE = (b"\\n", b"\\r", b"\\t", b"\\b", b"\\f", b"[m", b"[K")


def within_word(raw: bytes, at: int) -> bool:
    """Whether a letter or digit stands before *at* that does not end an escape: \\n, \\u0022, %3D, ESC [1;31m."""
    before = raw[max(0, at - 6) : at]
    if not before[-1:].isalnum():
        return False
    if before.endswith(_ENDS_AN_ESCAPE):
        return False
    if before[-3:-2] == b"%" or before[-4:-2] == b"\\x" or before[-6:-2] == b"\\u00":
        return bool(before[-2:].strip(_HEX))
    colour = before[:-1].rstrip(_DIGITS)
    return not (before[-1:] == b"m" and len(colour) < len(before) - 1 and colour[-1:] in (b"[", b";"))


# --- what a run must hold, where its length alone is no proof ---


def is_random(body: bytes) -> bool:
    """A digit and a letter, or both cases: no word, no number."""
    letters = body.translate(None, _DIGITS)
    if len(letters) < len(body):
        return bool(letters.translate(None, b"-_.+/=%"))
    return not (body.islower() or body.isupper())


def _openai(body: bytes) -> bool:
    # A digit, and either both cases or 24 characters without a dash: names such as sk-cube-grid have neither.
    if len(body.translate(None, _DIGITS)) == len(body):
        return False
    return not (body.islower() or body.isupper()) or any(
        len(part) >= 24 for part in body[:4096].replace(b"_", b"-").split(b"-")
    )


def _jwt(body: bytes) -> bool:
    # Three parts, or the five of an encrypted one, whose second may be empty.
    head, *rest = body.split(b".", 3)
    return len(head) >= 10 and len(rest) >= 2 and (len(rest[0]) >= 4 or (not rest[0] and len(rest[1]) >= 4))


def _parts(body: bytes, *least: int) -> bool:
    parts = body.split(b".", len(least))
    return len(parts) >= len(least) and all(map(int.__ge__, map(len, parts), least))


def _slack(body: bytes) -> bool:
    parts = _slashes(body)
    return len(parts) >= 4 and parts[1] in (b"services", b"workflows", b"triggers") and all(parts[2:4])


def _slashes(body: bytes) -> list[bytes]:
    plain = body[:1024].replace(b"\\", b"").replace(b"%2F", b"/").replace(b"%2f", b"/")
    return plain.split(b"/")


def _uuid(body: bytes) -> bool:
    return [len(part) for part in body[:36].split(b"-")] == [8, 4, 4, 4, 12] and not body[:36].strip(_HEX + b"-")


def _anthropic(body: bytes) -> bool:
    kind, _, rest = body.partition(b"-")  # api03, admin01
    return len(rest) >= 16 and kind[-2:].isdigit() and kind[:-2].isalpha() and kind.islower()


def _resend(body: bytes) -> bool:
    head, _, tail = body.partition(b"_")
    return len(head) == 8 and len(tail) >= 20 and is_random(tail)


_NEEDS: dict[str, Callable[[bytes], bool]] = {
    "random": is_random,
    "short": lambda body: len(body) <= 400 and is_random(body),  # a program in base64 begins so, too
    "openai": _openai,
    "anthropic": _anthropic,
    "jwt": _jwt,
    "uuid": _uuid,
    "resend": _resend,
    "slack": _slack,
    "slack app": lambda body: body[:2] in (b"1-", b"2-") or (body[:20].isalnum() and is_random(body[:64])),
    "digit first": lambda body: body[:1].isdigit(),
    "webhook": lambda body: b"webhook" in body[:64],
    "sendgrid": lambda body: _parts(body, 16, 32),
    "discord": lambda body: _parts(body, 20, 5, 26) and len(body.split(b".", 2)[1]) in (5, 6, 7),
    "airtable": lambda body: _parts(body, 14, 64) and len(body.split(b".", 1)[0]) == 14,
    "salesforce": lambda body: b"!" in body[:16],
    "groups": lambda body: body.upper() == body and all(len(part) in (5, 6) for part in body[:34].split(b"-")[:-1]),
}
