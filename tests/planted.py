"""A seed -> secrets of every known format, made up; and the places where secrets are met.

The parts that everybody knows are put together here, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Callable

UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
DIGITS = "0123456789"
ALNUM = UPPER + UPPER.lower() + DIGITS
LOWER = UPPER.lower() + DIGITS
BASE64URL = ALNUM + "-_"
BASE64 = ALNUM + "+/"
HEX = "0123456789abcdef"

Make = Callable[[random.Random], str]


def chars(rng: random.Random, alphabet: str, count: int) -> str:
    """Random characters with a digit and both cases among them, so that a random secret is no unlucky one."""
    sure = [
        rng.choice([c for c in alphabet if test(c)] or alphabet) for test in (str.isdigit, str.isupper, str.islower)
    ]
    found = sure + rng.choices(alphabet, k=count - len(sure))
    rng.shuffle(found)
    return "".join(found)


def an(count: int, alphabet: str = ALNUM) -> Make:
    return lambda rng: chars(rng, alphabet, count)


def made(*parts: str | Make) -> Make:
    """The parts one behind the other."""
    return lambda rng: "".join(part if isinstance(part, str) else part(rng) for part in parts)


def hexes(count: int) -> Make:
    return lambda rng: chars(rng, HEX, count - 1) + rng.choice("abcdef")


def uuid(rng: random.Random) -> str:
    return "-".join(chars(rng, HEX, size) for size in (8, 4, 4, 4, 12))


def discord(rng: random.Random) -> str:
    number = "1" + chars(rng, DIGITS, 18)
    return (
        base64.b64encode(number.encode()).decode().rstrip("=")[2:]
        + f".{chars(rng, BASE64URL, 6)}."
        + chars(rng, BASE64URL, 38)
    )


# Each format: the part that is known to everybody, and the part that is secret.
FORMATS: dict[str, tuple[str, Make]] = {
    "jwt": ("ey" + "J", made(an(33, BASE64URL), ".", an(120, BASE64URL), ".", an(43, BASE64URL))),
    "jwt encrypted": ("ey" + "J", made(an(33), "..", an(16), ".", an(90, BASE64URL), ".", an(22))),
    "grafana legacy": ("eyJr" + "Ijoi", an(80)),
    **{f"aws {kind}": (kind[:2] + kind[2:], an(16, UPPER + DIGITS)) for kind in ("AKIA", "ASIA", "ABIA", "ACCA")},
    "google": ("AI" + "za", an(35, BASE64URL)),
    "google ai": ("AQ" + ".Ab8", an(46, BASE64URL)),
    "google oauth secret": ("GOC" + "SPX-", an(28, BASE64URL)),
    "google access": ("ya" + "29.", an(120, BASE64URL)),
    "google refresh": ("1/" + "/0", an(60, BASE64URL)),
    "azure ad": ("aB3" + "8Q~", an(34, BASE64URL)),
    "azure ad older": ("aB3" + "7Q~", an(31, BASE64URL)),
    "azure identifiable": ("x7" * 26 + "JQQJ" + "99", an(26)),
    "azure sas": ("si" + "g=", made(an(40), "%2B", an(8), "%3D")),
    **{f"digitalocean {kind}": (f"{kind}_" + "v1_", an(64, HEX)) for kind in ("dop", "doo", "dor")},
    "cloudflare origin": ("v1." + "0-", made(hexes(24), "-", hexes(146))),
    **{f"cloudflare {kind}": (kind + "_", an(48)) for kind in ("cfut", "cfat", "cfk")},
    "heroku": ("HR" + "KU-", made("AA", an(58, BASE64URL))),
    "alibaba": ("LT" + "AI", an(20)),
    "tencent": ("AK" + "ID", an(32)),
    "yandex": ("AQ" + "VN", an(38, BASE64URL)),
    "yandex oauth": ("y0" + "__", an(55, BASE64URL)),
    "yandex oauth older": ("y0" + "_A", an(55, BASE64URL)),
    **{f"fly {kind}": (kind + "_", an(200, BASE64)) for kind in ("fm1r", "fm1a", "fm2", "fo1")},
    **{f"vercel {kind}": (kind + "_", an(56)) for kind in ("vcp", "vca", "vci", "vcr", "vck")},
    **{f"netlify {kind}": (kind + "_", an(40)) for kind in ("nfp", "nfo", "nfc", "nfu", "nfb")},
    "render": ("rn" + "d_", an(32)),
    "supabase": ("sb" + "p_", hexes(40)),
    "supabase secret": ("sb_" + "secret_", an(31, BASE64URL)),
    **{f"planetscale {kind}": ("pscale" + f"_{kind}_", an(43, BASE64URL)) for kind in ("tkn", "oauth", "pw")},
    "neon": ("na" + "pi_", an(64, LOWER)),
    "openshift": ("sha" + "256~", an(43, BASE64URL)),
    "docker swarm": ("SWM" + "TKN-1-", made(an(50, LOWER), "-", an(25, LOWER))),
    "k3s": ("K" + "10", made(hexes(64), "::server:", hexes(32))),
    "tailscale": ("ts" + "key-", made("auth-", an(12), "CNTRL-", an(32))),
    **{f"vault {kind}": (kind + ".", an(90, BASE64URL)) for kind in ("hvs", "hvb", "hvr")},
    "terraform": ("aB3dE6gH9jK2mN" + ".atlas" + "v1.", an(67, BASE64URL)),
    "pulumi": ("pu" + "l-", hexes(40)),
    "databricks": ("da" + "pi", hexes(32)),
    **{f"doppler {kind}": (f"dp.{kind}" + ".", an(43)) for kind in ("pt", "st", "ct", "sa", "scim", "audit")},
    "1password service": ("ops_" + "eyJ", an(300, BASE64)),
    "1password secret": ("A" + "3-", lambda r: "-".join(chars(r, UPPER + DIGITS, n) for n in (6, 6, 5, 5, 5, 5))),
    "age": ("AGE-SECRET" + "-KEY-1", an(58, UPPER + DIGITS)),
    "age plugin": ("AGE-" + "PLUGIN-", made("YUBIKEY-1", an(50, UPPER + DIGITS))),
    **{f"github gh{letter}": (f"gh{letter}" + "_", an(36)) for letter in "pousr"},
    "github fine-grained": ("github_" + "pat_", made(an(22), "_", an(59))),
    **{
        f"gitlab {kind}": (kind + "-", an(20, BASE64URL))
        for kind in [
            "glpat",
            "gldt",
            "glrt",
            "glrtr",
            "glft",
            "glsoat",
            "glcbt",
            "glptt",
            "glimt",
            "glagent",
            "gloas",
            "glffct",
            "glwt",
        ]
    },
    "gitlab runner": ("GR13" + "48941", an(20, BASE64URL)),
    "gitlab routable": ("gl" + "pat-", made(an(40, BASE64URL), ".01.", an(9, DIGITS))),
    **{
        f"atlassian {kind}": (kind + "3", made(an(180, BASE64URL), "=", an(8, HEX)))
        for kind in ("ATATT", "ATCTT", "ATSTT")
    },
    "bitbucket": ("AT" + "BB", an(32)),
    "bitbucket server": ("BB" + "DC-", an(44, BASE64)),
    **{f"sourcegraph {kind}": (kind + "_", hexes(40)) for kind in ("sgp", "sgd")},
    **{f"circleci {kind}": (kind + "_", made(an(22), "_", hexes(40))) for kind in ("CCIPAT", "CCIPRJ")},
    **{f"buildkite {kind}": (kind + "_", hexes(40)) for kind in ("bkua", "bkct")},
    **{f"sonar {kind}": (kind + "_", hexes(40)) for kind in ("sqp", "squ", "sqa")},
    "npm": ("np" + "m_", an(36)),
    "pypi": ("py" + "pi-AgEI", an(150, BASE64URL)),
    "rubygems": ("ruby" + "gems_", hexes(48)),
    "crates": ("ci" + "o", an(32)),
    "nuget": ("oy" + "2", an(43, LOWER)),
    **{f"docker {kind}": (f"dckr_{kind}" + "_", an(27, BASE64URL)) for kind in ("pat", "oat")},
    "artifactory": ("AK" + "Cp", an(69)),
    "artifactory reference": ("cmVm" + "dGtu", an(56)),
    "clojars": ("CLO" + "JARS_", hexes(60)),
    **{f"packagist {kind}": (f"packagist_{kind}" + "_", hexes(68)) for kind in ("ack", "uut", "out")},
    **{
        f"slack xox{letter}": (f"xox{letter}" + "-", made(an(12, DIGITS), "-", an(12, DIGITS), "-", an(24)))
        for letter in "bparseco"
    },
    "slack cookie": ("xox" + "d-", made(an(30), "%2F", an(30), "%3D")),
    "slack app": ("xa" + "pp-", made("1-A", an(10, UPPER + DIGITS), "-", an(13, DIGITS), "-", hexes(64))),
    "slack webhook": (
        "hooks.slack" + ".com/services/",
        made("T", an(9, UPPER + DIGITS), "/B", an(9, UPPER + DIGITS), "/", an(24)),
    ),
    "discord bot": ("M" + "T", discord),
    "discord webhook": ("discord" + ".com/api/webhooks/", made(an(18, DIGITS), "/", an(68, BASE64URL))),
    "discord webhook older": ("discordapp" + ".com/api/webhooks/", made(an(18, DIGITS), "/", an(68, BASE64URL))),
    "telegram": ("1234567890" + ":AA", an(33, BASE64URL)),
    "teams": ("acme.webhook.office" + ".com/webhookb2/", made(uuid, "@", "x", "/IncomingWebhook/", hexes(32))),
    "teams older": ("outlook.office" + ".com/webhook/", made(uuid, "/IncomingWebhook/", hexes(32))),
    "zapier": ("hooks.zapier" + ".com/hooks/catch/", made(an(7, DIGITS), "/", an(12))),
    **{f"stripe {kind}": (f"{kind[:2]}_{kind[2:]}" + "_", an(24)) for kind in ("sklive", "rklive", "sktest", "rktest")},
    "stripe webhook": ("wh" + "sec_", an(32, BASE64)),
    "square": ("sq0" + "atp-", an(22, BASE64URL)),
    "square secret": ("sq0" + "csp-", an(43, BASE64URL)),
    "square access": ("EA" + "AA", an(60, BASE64URL)),
    "meta": ("EA" + "AC", an(160)),
    **{
        f"braintree {kind}": ("access_token" + f"${kind}$", made(an(16, LOWER), "$", hexes(32)))
        for kind in ("production", "sandbox")
    },
    **{f"shopify {kind}": (kind + "_", hexes(32)) for kind in ("shpat", "shpca", "shppa", "shpss", "shpua")},
    **{f"razorpay {kind}": (f"rzp_{kind}" + "_", an(14)) for kind in ("live", "test")},
    **{f"plaid {kind}": (f"access-{kind}" + "-", uuid) for kind in ("production", "sandbox", "development")},
    "adyen": ("AQ" + "Emhmfuh", made(an(90, BASE64), "-", an(40, BASE64))),
    "flutterwave": ("FLW" + "SECK-", made(hexes(32), "-X")),
    "flutterwave test": ("FLW" + "SECK_TEST-", an(12)),
    "mollie": ("li" + "ve_", an(30)),
    "sendgrid": ("S" + "G.", made(an(22, BASE64URL), ".", an(43, BASE64URL))),
    "mailgun": ("ke" + "y-", hexes(32)),
    "mailchimp": ("", made(hexes(32), "-us", an(3, DIGITS))),
    "mandrill": ("m" + "d-", an(22, BASE64URL)),
    "twilio": ("S" + "K", hexes(32)),
    **{f"brevo {kind}": (kind + "-", made(hexes(64), "-", an(16))) for kind in ("xkeysib", "xsmtpsib")},
    "resend": ("r" + "e_", made(an(8), "_", an(24))),
    **{
        f"newrelic {kind}": (kind + "-", an(27, UPPER + DIGITS))
        for kind in ["NRAK", "NRJS", "NRII", "NRRA", "NRAA", "NRIQ", "NRSP"]
    },
    "newrelic license": ("", made(hexes(36), "NR" + "AL")),
    "sentry": ("sn" + "trys_", an(180, BASE64)),
    "sentry user": ("sn" + "tryu_", hexes(64)),
    "sentry internal": ("sn" + "tryi_", hexes(64)),
    "grafana cloud": ("gl" + "c_", an(120, BASE64)),
    "grafana": ("gl" + "sa_", made(an(32), "_", hexes(8))),
    **{
        f"dynatrace {kind}": (kind + ".", made(an(24, UPPER + DIGITS), ".", an(64, UPPER + DIGITS)))
        for kind in ("dt0c01", "dt0s01", "dt0s02", "dt0s16")
    },
    **{f"honeycomb {kind}": (kind + "_", an(58, LOWER)) for kind in ("hcaik", "hcbik", "hccik", "hcamk")},
    "posthog": ("ph" + "x_", an(43)),
    **{f"launchdarkly {kind}": (kind + "-", uuid) for kind in ("sdk", "mob", "api")},
    **{f"axiom {kind}": (kind + "-", uuid) for kind in ("xaat", "xapt")},
    **{f"prefect {kind}": (kind + "_", an(36)) for kind in ("pnu", "pnb")},
    "anthropic": ("sk-" + "ant-", made("api03-", an(93, BASE64URL), "AA")),
    "anthropic admin": ("sk-" + "ant-", made("admin01-", an(93, BASE64URL), "AA")),
    "openrouter": ("sk-" + "or-v1-", hexes(64)),
    "openai": ("sk" + "-", an(48)),
    "openai project": ("sk-" + "proj-", an(150, BASE64URL)),
    "openai service": ("sk-" + "svcacct-", an(120, BASE64URL)),
    "openai session": ("se" + "ss-", an(40)),
    "openai alike, hex": ("sk" + "-", made(hexes(31), "7")),
    "huggingface": ("h" + "f_", an(34)),
    "huggingface org": ("api_" + "org_", an(34)),
    "groq": ("gs" + "k_", an(52)),
    "perplexity": ("pp" + "lx-", an(48)),
    "xai": ("xa" + "i-", an(80)),
    "replicate": ("r" + "8_", an(37)),
    "fireworks": ("f" + "w_", an(24)),
    "fireworks platform": ("fp" + "k_", an(24)),
    "cerebras": ("cs" + "k-", an(48, LOWER)),
    "nvidia": ("nv" + "api-", an(64, BASE64URL)),
    "elevenlabs": ("s" + "k_", hexes(48)),
    "voyage": ("p" + "a-", an(43, BASE64URL)),
    "jina": ("ji" + "na_", an(60, BASE64URL)),
    "tavily": ("tv" + "ly-", made("dev-", an(32))),
    **{f"langsmith {kind}": (f"lsv2_{kind}" + "_", made(hexes(32), "_", hexes(10))) for kind in ("pt", "sk")},
    "wandb": ("wandb" + "_v1_", an(80)),
    "pinecone": ("pc" + "sk_", made(an(6), "_", an(63))),
    "e2b": ("e2" + "b_", hexes(40)),
    "modal id": ("a" + "k-", an(22)),
    "modal secret": ("a" + "s-", an(22)),
    "runpod": ("rp" + "a_", an(46, UPPER + DIGITS)),
    "together": ("tgp" + "_v1_", an(43, BASE64URL)),
    "firecrawl": ("f" + "c-", hexes(32)),
    "linear": ("lin_" + "api_", an(40)),
    "linear oauth": ("lin_" + "oauth_", hexes(64)),
    "notion": ("nt" + "n_", an(46)),
    "notion older": ("sec" + "ret_", an(43)),
    **{f"figma {kind}": (kind + "_", an(40, BASE64URL)) for kind in ("figd", "figo", "figu")},
    "postman": ("PM" + "AK-", made(hexes(24), "-", hexes(34))),
    "airtable": ("pa" + "t", made(an(14), ".", hexes(64))),
    **{f"hubspot {kind}": (f"pat-{kind}" + "-", uuid) for kind in ("na1", "na2", "eu1")},
    "mapbox": ("sk." + "eyJ", made(an(80), ".", an(22, BASE64URL))),
    "dropbox": ("s" + "l.", made("B", an(130, BASE64URL))),
    "typeform": ("tf" + "p_", made(an(40), "_", an(16))),
    "contentful": ("CF" + "PAT-", an(43, BASE64URL)),
    "salesforce": ("00" + "D", made(an(12), "!", "AQ", an(94, ALNUM + "._"))),
    "adafruit": ("ai" + "o_", an(28)),
    **{f"easypost {kind}": (kind, an(54)) for kind in ("EZAK", "EZTK")},
    **{f"shippo {kind}": (f"shippo_{kind}" + "_", hexes(40)) for kind in ("live", "test")},
    **{f"duffel {kind}": (f"duffel_{kind}" + "_", an(43, BASE64URL)) for kind in ("live", "test")},
    "readme": ("rd" + "me_", an(70, LOWER)),
    "infracost": ("ic" + "o-", an(32)),
    "octopus": ("AP" + "I-", an(26, UPPER + DIGITS)),
    "nylas": ("nyk" + "_v0_", an(60)),
    "adobe": ("p8" + "e-", an(32)),
    "apify": ("apify" + "_api_", an(36)),
    "gitpod": ("gitpod" + "_pat_", an(43)),
    "mongodb": ("mdb_sa" + "_sk_", an(40, BASE64URL)),
    "alchemy": ("alc" + "ht_", an(30)),
    "xata": ("xa" + "u_", an(32)),
    "cockroach": ("CCDB" + "1_", made(an(22), "_", an(40))),
    **{f"polar {kind}": (f"polar_{kind}" + "_", an(43)) for kind in ("pat", "oat")},
    **{
        f"paddle {kind}": (f"pdl_{kind}" + "_apikey_", made(an(26), "_", an(22), "_", an(3)))
        for kind in ("live", "sdbx")
    },
    **{f"inngest {kind}": (f"signkey-{kind}" + "-", hexes(64)) for kind in ("prod", "test", "branch")},
    **{f"trigger {kind}": (f"tr_{kind}" + "_", an(24)) for kind in ("prod", "dev", "stg", "pat")},
    "browserbase": ("bb" + "_live_", an(27, BASE64URL)),
    "unkey": ("unk" + "ey_", an(24)),
    "socket": ("skt" + "sec_", an(44, BASE64URL)),
    **{f"deno {kind}": (kind + "_", an(36)) for kind in ("ddp", "ddo", "ddw")},
    **{f"onesignal {kind}": (f"os_v2_{kind}" + "_", an(100, LOWER + DIGITS)) for kind in ("app", "org")},
    "pubnub": ("sec" + "-c-", uuid),
    "mailersend": ("ml" + "sn.", hexes(64)),
    **{f"stytch {kind}": (f"secret-{kind}" + "-", an(44, BASE64URL)) for kind in ("live", "test")},
    "configcat": ("configcat" + "-sdk-1/", made(an(22), "/", an(22))),
    "defined": ("dn" + "key-", made(an(26), "-", an(52))),
    "frameio": ("fio" + "-u-", an(64, BASE64URL)),
    **{f"intra42 {kind}": (f"s-s4t2{kind}" + "-", hexes(64)) for kind in ("ud", "af")},
    **{f"scalingo {kind}": (f"tk-{kind}" + "-", an(48, BASE64URL)) for kind in ("us", "eu")},
    **{f"settlemint {kind}": (f"sm_{kind}" + "_", an(16)) for kind in ("aat", "pat", "sat")},
    "harness": ("pa" + "t.", made(an(22), ".", hexes(24), ".", an(20))),
    "maxmind": ("", made(an(6), "_", an(29), "_m" + "mk")),
    **{f"cal {kind}": (f"cal_{kind}" + "_", hexes(32)) for kind in ("live", "test")},
    "anyscale": ("esec" + "ret_", an(26)),
    **{f"langfuse {kind}": (f"{kind}-lf" + "-", uuid) for kind in ("sk", "pk")},
    **{f"bcrypt {kind}": (f"${kind}" + "$12$", an(53, ALNUM + "./")) for kind in ("2a", "2b", "2y")},
    **{
        f"argon {kind}": (f"${kind}" + "$v=19$m=65536,t=3,p=4$", made(an(22, BASE64), "$", an(43, BASE64)))
        for kind in ("argon2i", "argon2d", "argon2id")
    },
    **{f"crypt {kind}": (f"${kind}" + "$", made(an(16, ALNUM), "$", an(86, ALNUM + "./"))) for kind in ("5", "6", "y")},
}

# Where a secret is met; {} stands for it. What is around it must survive.
CARRIERS = {
    "alone": "{}",
    "at the start": "{} is what it was",
    "at the end": "what it was is {}",
    "mid-line": "use {} for now",
    "sentence": "The thing (it was {}) is gone.",
    "end of a sentence": "It was {}. Now it is gone.",
    "quoted": "'{}'",
    "backticks": "run with `{}` set",
    "env": "export THE_THING={}\nexport OTHER=1",
    "env quoted": 'THE_THING="{}"',
    "yaml": "thing: {}\nname: x",
    "json": '{"thing": "{}", "n": 1}',
    "json in json": '{\\"thing\\": \\"{}\\"}',
    "escaped lines": "first\\n{}\\nlast",
    "escaped tabs": "a\\t{}\\tb",
    "unicode escape": "x\\u0022{}\\u0022",
    "diff added": "@@ -1 +1 @@\n+{}\n context",
    "diff removed": "@@ -1 +1 @@\n-{}\n context",
    "diff assignment": "-THING={}\n+THING=",
    "header": "X-Thing: {}\r\nHost: example.com",
    "flag": "tool --thing={} --verbose",
    "query": "https://example.com/x?thing={}&n=1",
    "query, encoded": "https://example.com/x?next=thing%3D{}",
    "as a user": "https://{}@example.com/repo.git",
    "colour": "\x1b[1;31m{}\x1b[0m",
    "grep colour": "\x1b[01;31m\x1b[K{}\x1b[m\x1b[K",
    "xml": "<thing>{}</thing>",
    "csv": "1,{};2",
    "list": "['{}', \"{}\"]",
    "after CJK": "密钥{}。",
    "twice on a line": "{} {}",
}


def secrets_of(name: str, count: int = 3, *, seed: object = "") -> list[tuple[str, str]]:
    known, make = FORMATS[name]
    rng = random.Random(f"{name}{seed}")
    return [(known, make(rng)) for _ in range(count)]
