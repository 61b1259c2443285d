"""Find tokens of known formats: one table, one compiled expression per row.

A token begins with a literal prefix and goes on with a run of characters of one class. Most text holds no prefix in any
word that is long enough for a token, so the expressions run only where a prefix stands. Every run is read once per row:
an attempt that fails because of what the run holds goes on behind the run, which keeps the search linear.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import accumulate

Span = tuple[int, int, str]  # from, to, the name of what stands there
Check = Callable[[str], object]

CLASSES = {
    "digit": "0-9",
    "hex": "0-9a-fA-F",
    "upper": "0-9A-Z",
    "alnum": "0-9A-Za-z",
    "word": "0-9A-Za-z_",
    "dash": r"0-9A-Za-z_\-",
    "dots": r"0-9A-Za-z_\-.",
    "base64": r"0-9A-Za-z_\-+/=",
    "url": r"0-9A-Za-z_\-.+%~=:",
    "path": r"0-9A-Za-z_\-.%/",
    "sums": r"0-9A-Za-z_\-.+%/=$!,~:",
    "any": r"0-9A-Za-z_\-.+%/=$!,~:@",
}

# Name, prefixes, the least number of characters behind the prefix, their class, what else they must fulfil (CHECKS),
# and where the token may begin: anywhere (""), not within a word ("word"), or with so many characters before the prefix
# ("hex 32"). A new format is a new row; where one holds another, the longer comes first.
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
    ("gitlab-token", "glpat- gldt- glrt- glrtr- glft- glsoat- glcbt- glptt- glimt-", 20, "dots", "", ""),
    ("gitlab-token", "glagent- gloas- glffct- glwt- GR1348941", 20, "dots", "", ""),
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
    ("adobe-secret", "p8e-", 32, "alnum", "random", "word"),
    ("apify-token", "apify_api_", 30, "alnum", "", ""),
    ("gitpod-token", "gitpod_pat_", 30, "base64", "", ""),
    ("mongodb-secret", "mdb_sa_sk_", 30, "dash", "", ""),
    ("alchemy-token", "alcht_", 24, "alnum", "random", "word"),
    ("xata-key", "xau_", 28, "alnum", "random", "word"),
    ("cockroach-key", "CCDB1_", 40, "word", "", "word"),
    ("polar-token", "polar_pat_ polar_oat_", 32, "alnum", "", ""),
    ("paddle-key", "pdl_live_apikey_ pdl_sdbx_apikey_", 40, "word", "", ""),
    ("inngest-key", "signkey-prod- signkey-test- signkey-branch-", 32, "hex", "", ""),
    ("trigger-key", "tr_prod_ tr_dev_ tr_stg_ tr_pat_", 20, "alnum", "random", "word"),
    ("browserbase-key", "bb_live_", 24, "dash", "random", "word"),
    ("unkey-key", "unkey_", 20, "alnum", "random", "word"),
    ("socket-key", "sktsec_", 36, "dash", "", ""),
    ("deno-token", "ddp_ ddo_ ddw_", 36, "alnum", "", "word"),
    ("onesignal-key", "os_v2_app_ os_v2_org_", 60, "alnum", "", ""),
    ("pubnub-key", "sec-c-", 36, "dash", "random", "word"),
    ("mailersend-token", "mlsn.", 60, "hex", "", "word"),
    ("stytch-secret", "secret-live- secret-test-", 36, "base64", "", ""),
    ("configcat-key", "configcat-sdk-1/", 44, "path", "", ""),
    ("defined-key", "dnkey-", 60, "dash", "", "word"),
    ("frameio-token", "fio-u-", 60, "dash", "", "word"),
    ("intra42-secret", "s-s4t2ud- s-s4t2af-", 64, "hex", "", ""),
    ("scalingo-token", "tk-us- tk-eu-", 48, "dash", "", "word"),
    ("settlemint-token", "sm_aat_ sm_pat_ sm_sat_", 16, "alnum", "random", "word"),
    ("harness-token", "pat.", 60, "dots", "harness", "word"),
    ("maxmind-key", "_mmk", 0, "alnum", "", "word 36"),
    ("cal-key", "cal_live_ cal_test_", 32, "alnum", "", ""),
    ("anyscale-key", "esecret_", 25, "alnum", "", "word"),
    ("langfuse-key", "sk-lf- pk-lf-", 36, "dash", "uuid", "word"),
    ("password-hash", "$2a$ $2b$ $2y$ $argon2i$ $argon2id$ $argon2d$", 50, "sums", "", ""),
    ("password-hash", "$6$ $5$ $y$", 60, "sums", "random", ""),
)
SHORTEST = 20  # characters of an AWS key; a shorter word holds no token

_DIGIT, _SMALL, _CAPITAL, _NO_DIGIT_OR_SIGN = map(re.compile, ("[0-9]", "[a-z]", "[A-Z]", r"[^0-9\-_.+/=%]"))


def is_random(text: str) -> bool:
    """Tell whether *text* holds a digit and a letter, or both cases: no word, no number."""
    if _DIGIT.search(text):
        return _NO_DIGIT_OR_SIGN.search(text) is not None
    return (_SMALL.search(text) is None) == (_CAPITAL.search(text) is None)


def _has_digit_and_case(body: str) -> bool:
    # A digit, and either both cases or 24 characters without a dash: names such as sk-cube-grid have neither.
    if not _DIGIT.search(body):
        return False
    return not (body.islower() or body.isupper()) or bool(re.search("[^_-]{24}", body[:4096]))


_SLASH = r"(?:\\?/|%2[fF])"
# What a run must fulfil where its length alone is no proof.
CHECKS: dict[str, Check] = {
    "": lambda _: True,
    "random": is_random,
    "short": lambda body: len(body) <= 400 and is_random(body),  # a program in base64 begins so, too
    "openai": _has_digit_and_case,
    "anthropic": re.compile(r"[a-z]+[0-9]{2}-.{16}").match,  # api03, admin01
    "jwt": re.compile(r"[^.]{10,}+\.(?:[^.]{4,}+\.|\.[^.]{4})").match,  # an encrypted one may lack its second part
    "uuid": re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").match,
    "resend": lambda body: body.find("_") == 8 and is_random(body[9:]),
    "slack": re.compile(
        rf"[^/\\%]*+{_SLASH}(?:services|workflows|triggers){_SLASH}[^/\\]{{1,200}}?{_SLASH}[^/\\%]"
    ).match,
    "slack app": lambda body: body[:2] in ("1-", "2-") or (body[:20].isalnum() and is_random(body[:64])),
    "digit first": re.compile("[0-9]").match,
    "webhook": re.compile(".{0,57}webhook").match,
    "sendgrid": re.compile(r"[^.]{16,}+\.[^.]{32}").match,
    "discord": re.compile(r"[^.]{20,}+\.[^.]{5,7}\.[^.]{26}").match,
    "airtable": re.compile(r"[^.]{14}\.[^.]{64}").match,
    "salesforce": re.compile(".{0,15}!").match,
    "harness": re.compile(r"[^.]{22}\.[^.]{24}\.[^.]{20}").match,
    "groups": lambda body: body.upper() == body and all(len(part) in (5, 6) for part in body[:34].split("-")[:-1]),
}


_HEX2 = "[0-9a-fA-F]{2}"
# What ends in a letter or digit and is no part of a word: \n, %3D, \x22, \u0022, ESC [K, ESC [1;31m.
_ESCAPES = [r"\\[nrtbf]", f"%{_HEX2}", rf"\\x{_HEX2}", rf"\\u00{_HEX2}", r"\[[mK]"]
_ESCAPES += [rf"[\[;][0-9]{{{count}}}m" for count in (1, 2, 3)]
_WORD_BEGINS = "(?:" + "|".join(("(?<![0-9A-Za-z])", *(f"(?<={each})" for each in _ESCAPES))) + ")"


@cache
def _compile_row(number: int) -> re.Pattern[str]:
    """Return the expression of a row of FORMATS; its group `run` is what follows the prefix."""
    _, prefixes, least, kind, _, begins = FORMATS[number]
    prefix = f"(?:{'|'.join(map(re.escape, prefixes.split()))})"
    behind, _, count = begins.partition(" ")
    if count:
        prefix += f"(?<=[{CLASSES[behind]}]{{{count}}}{prefix})"
    elif begins:
        prefix = _WORD_BEGINS + prefix
    one = f"[{CLASSES[kind]}]"
    run = f"{one}{{{least},}}+"
    if "/" in one:  # JSON may write a slash as \/
        run = rf"(?=(?:{one}|\\(?=/)){{{least}}}){one}*+(?>(?:\\/{one}*+)*)"
    return re.compile(f"{prefix}(?P<run>{run})")


def _split_prefixes() -> tuple[list[tuple[str, int]], dict[str, list[int]]]:
    """Return the prefixes to look for as they are, and the rows of all others by the heads of their prefixes.

    A head reaches to the last sign of a prefix (`pypi-` of `pypi-AgE`), or to its end if it begins words only.
    """
    literals: list[tuple[str, int]] = []
    heads: dict[str, list[int]] = {}
    for number, (_, prefixes, _, _, _, begins) in enumerate(FORMATS):
        for prefix in prefixes.split():
            head = re.match("[0-9A-Za-z]{2,}.*[^0-9A-Za-z]", prefix)
            if head or begins == "word":
                heads.setdefault(head[0] if head else prefix, []).append(number)
            else:
                literals.append((prefix, number))
    return literals, heads


@cache
def _compile_heads() -> list[re.Pattern[str]]:
    """Return what finds the heads: their last group is a head, and at least 12 characters of a token follow.

    A sign is rare, so it is looked for first, the letters before it in a look-behind. One alternation of all prefixes
    would be tried at every letter and read 10 MB a second.
    """
    signs: dict[str, dict[int, list[str]]] = {}
    words: list[str] = []
    for head in sorted(_HEADS, key=len, reverse=True):
        if head[-1].isalnum():
            words.append(re.escape(head))
        else:
            signs.setdefault(head[-1], {}).setdefault(len(head), []).append(re.escape(head))
    follows = rf"[{CLASSES['any']}\\]{{12}}"
    escape = f"[nrtbfmK]|{_HEX2}|x{_HEX2}|u00{_HEX2}|[0-9]{{1,3}}m"
    found = [rf"[^0-9A-Za-z](?:{escape})?(?=({'|'.join(words)}){follows})"]
    for sign, lengths in signs.items():
        heads = "|".join(f"(?<=({'|'.join(heads)}))" for heads in lengths.values())
        found.append(rf"{re.escape(sign)}(?<=[0-9A-Za-z].)(?={follows})(?:{heads})")
    return [re.compile(each) for each in found]


_LITERALS, _HEADS = _split_prefixes()


@cache
def _rows_of(head: str) -> list[tuple[int, int]]:
    """Return the rows to try at *head*, and where in it each begins: csk- ends with sk-, EAAA begins with EAA."""
    return [
        (row, len(head) - len(other) if head.endswith(other) else 0)
        for other, rows in _HEADS.items()
        if head.endswith(other) or head.startswith(other)
        for row in rows
    ]


# A word that is long enough for a token and holds a digit or a capital, with the character before it: one percent of a
# source. (Of 20 random small letters and digits, one in 700 has neither; every format of those has 30 or more.)
_ANY = rf"{CLASSES['any']}\\"
_WORD = re.compile(rf"[^{_ANY}](?=[a-z_\-.+%/=$!,~:@\\]*+[0-9A-Z])[{_ANY}]{{{SHORTEST},}}+")
_NAME = re.compile("[0-9A-Za-z_]*+")


def find_tokens(text: str) -> list[Span]:
    """Return where tokens stand, in order; of two that overlap, the one whose format comes first gives its name."""
    words = list(_WORD.finditer(f"\n{text}"))
    if not words:
        return []
    joined = "".join([word[0] for word in words])  # each begins with a character that is in no token
    found: list[tuple[int, int, int]] = []
    for prefix, number in _LITERALS:
        if prefix in joined:
            found += _check(number, joined, _compile_row(number).finditer(joined))
    # To compile what finds the heads takes 4 ms; most short texts hold none of them.
    short = len(joined) < 4096 and not any(head in joined for head in _HEADS)
    for finder in () if short else _compile_heads():
        done: dict[int, int] = {}
        for place in finder.finditer(joined):
            group = place.lastindex or 0
            at = place.start(group)
            for number, offset in _rows_of(place[group]):
                if at + offset >= done.get(number, 0) and (match := _compile_row(number).match(joined, at + offset)):
                    done[number] = match.end()
                    found += _check(number, joined, [match])
    if not found:
        return []
    begins = list(accumulate((len(word[0]) for word in words), initial=0))
    spans: list[Span] = []
    for start, number, end in sorted(found):
        at = bisect(begins, start) - 1
        moved = words[at].start() - 1 - begins[at]
        spans.append((start + moved, end + moved, FORMATS[number][0]))
    return merge_spans(spans)


def _check(number: int, text: str, matches: Iterable[re.Match[str]]) -> Iterator[tuple[int, int, int]]:
    """Yield (start, row, end) of each match that is a token."""
    _, _, least, _, check, begins = FORMATS[number]
    before = int(begins.partition(" ")[2] or 0)
    for match in matches:
        body = match["run"].rstrip(".:,%!~")  # the end of a sentence
        if len(body) >= least and CHECKS[check](body):
            end = _NAME.match(text, match.start("run") + len(body))
            yield match.start() - before, number, end.end() if end else 0


def merge_spans(spans: list[Span]) -> list[Span]:
    """Return *spans*, ordered by their beginnings, as spans that do not overlap; the first gives its name."""
    merged: list[Span] = []
    for start, end, name in spans:
        if not merged or start >= merged[-1][1]:
            merged.append((start, end, name))
        elif end > merged[-1][1]:
            merged[-1] = merged[-1][0], end, merged[-1][2]
    return merged


def mark(name: str) -> str:
    """Return what stands where a secret of this kind stood."""
    return f"[redacted:{name}]"


def replace_spans(text: str, spans: list[Span]) -> str:
    """Return *text* with a mark for each span; they are in order and do not overlap."""
    kept: list[str] = []
    done = 0
    for start, end, name in spans:
        kept += (text[done:start], f"[redacted:{name}]")
        done = end
    return "".join((*kept, text[done:]))
