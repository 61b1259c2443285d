"""What the place of a value gives away: passwords and keys beside telling names are gone, and source stays source."""

from __future__ import annotations

import random
import string

import pytest

from foreword.redact import redact, redact_all
from tests.planted import ALNUM, BASE64, HEX, chars, hexes, uuid

# --- a labelled corpus: every form of saying it, with names and values of every sort ---

NAMES = """
    password passwd pwd db_password dbPassword DB_PASSWORD POSTGRES_PASSWORD MYSQL_ROOT_PASSWORD user.password
    spring.datasource.password smtp-password admin_pass SMTP_PASS passphrase login_password Password
    userPassword rootpw_password PGPASSWORD REDIS_PASSWORD ssh_passphrase old_password newPassword password_1
    pass
""".split()  # noqa: SIM905 - data, read as text
WORDS = """
    horse staple wombat summer dragon monkey winter shadow master purple banana falcon copper silver
""".split()  # noqa: SIM905 - data, read as text


def passwords(rng: random.Random) -> list[str]:
    """One of each sort that people and generators make."""
    word, other = rng.sample(WORDS, 2)
    return [
        chars(rng, ALNUM, rng.randint(8, 24)),
        chars(rng, ALNUM + "!@#%^*-_+?", rng.randint(10, 20)),
        f"{word}{rng.randint(1, 9999)}",
        f"{word.title()}{rng.randint(2000, 2030)}!",
        f"{word}-{other}-{rng.randint(10, 99)}",
        word.replace("a", "@").replace("o", "0").replace("e", "3") + "77",
        "".join(rng.choices(string.digits, k=rng.randint(6, 10))),
    ]


FORMS = {
    "env": "{name}={value}",
    "env quoted": '{name}="{value}"',
    "env single": "{name}='{value}'",
    "export": "export {name}={value}",
    "docker env": "ENV {name}={value}",
    "yaml": "{name}: {value}",
    "yaml quoted": '  {name}: "{value}"',
    "yaml list": "- {name}: '{value}'",
    "toml": '{name} = "{value}"',
    "ini": "{name} = {value}",
    "python": 'connect(host, {name}="{value}", port=1)',
    "python annotated": '{name}: str = "{value}"',
    "javascript": "const x = {{ {name}: '{value}', port: 1 }};",
    "go": '{name} := "{value}"',
    "java": 'String {name} = "{value}";',
    "comparison": 'if {name} == "{value}":',
    "subscript": 'os.environ["{name}"] = "{value}"',
    "hash rocket": "'{name}' => '{value}',",
    "json": '{{"user": "a", "{name}": "{value}", "n": 1}}',
    "json tight": '{{"{name}":"{value}"}}',
    "json escaped": '{{\\"{name}\\": \\"{value}\\", \\"n\\": 1}}',
    "json escaped twice": '{{\\\\\\"{name}\\\\\\": \\\\\\"{value}\\\\\\"}}',
    "json lines": '{{\\n  \\"{name}\\": \\"{value}\\"\\n}}',
    "name and value": '{{"name": "{name}", "value": "{value}"}}',
    "kubernetes": "- name: {name}\n  value: {value}",
    "form": "user=ada&{name}={value}&go=1",
    "query": "https://example.com/login?user=ada&{name}={value}&x=1",
    "flag": "tool --{name} {value} --verbose",
    "flag tight": "tool --{name}={value} --verbose",
    "flag quoted": "tool --{name} '{value}' --verbose",
    "xml element": "<{name}>{value}</{name}>",
    "xml attribute": '<db user="a" {name}="{value}" />',
    "xml pair": '<add key="{name}" value="{value}" />',
    "ado": "Server=db;User Id=sa;{name}={value};Encrypt=true",
    "diff": "-{name}=old\n+{name}={value}",
    "log": "2026-11-16 connecting with {name}={value} to db",
    "escaped lines": "A=1\\n{name}={value}\\nB=2",
    "said": "the {name} is {value} for now",
    "make, if unset": "{name} ?= {value}",
    "make, at once": "{name} := {value}",
    "php, appended": "${name} .= '{value}';",
    "javascript, if null": "config.{name} ??= '{value}'",
    "ruby, if nil": '{name} ||= "{value}"',
    "go typed": 'var {name} string = "{value}"',
    "typescript typed": 'let {name}: string = "{value}";',
    "rust typed": 'const {name}: &str = "{value}";',
    "c pointer": 'static const char *{name} = "{value}";',
    "c array": 'char {name}[] = "{value}";',
    "c macro": '#define {name} "{value}"',
    "php constant": "define( '{name}', '{value}' );",
    "dockerfile": "ENV {name} {value}",
    "dockerfile argument": "ARG {name}={value}",
    "default of a variable": 'os.getenv("{name}", "{value}")',
    "default of a setting": "env('{name}', '{value}')",
    "set as a default": 'os.environ.setdefault("{name}", "{value}")',
    "property": 'props.setProperty("{name}", "{value}");',
    "header": 'req.Header.Set("{name}", "{value}")',
    "list": '["{name}", "{value}"]',
    "multipart": 'Content-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n--x',
    "html": '<input name="{name}" type="hidden" value="{value}">',
    "yaml, next line": "{name}: >-\n  {value}",
    "fish": "set -x {name} {value}",
    "windows": 'setx {name} "{value}"',
    "powershell": '$env:{name} = "{value}"',
    "cmake": 'set({name} "{value}")',
    "lisp": '(setq {name} "{value}")',
    "clojure": '{{:{name} "{value}"}}',
    "perl": '$config{{{name}}} = "{value}";',
    "bold": "**{name}**: {value}",
    "arrow": "{name} -> {value}",
    "table": "| id | {name} | {value} |",
    "table of code": "| `{name}` | `{value}` |",
    "tabs": "a\t{name}\t{value}",
}
BY_THEMSELVES = [
    "PGPASSWORD={value} psql -h db",
    "mysql -u root -p{value} shop",
    "mysqldump -uroot -p'{value}' --all-databases",
    "sshpass -p {value} ssh ada@host",
    "sshpass -p '{value}' ssh ada@host",
    "curl -u ada:{value} https://example.com",
    "curl --user ada:{value} https://example.com",
    "redis-cli -a {value} ping",
    "docker login -u ada -p {value} example.com",
    "ALTER USER ada WITH PASSWORD '{value}';",
    "CREATE USER 'a'@'%' IDENTIFIED BY '{value}';",
    "SET PASSWORD FOR 'a'@'b' = PASSWORD('{value}');",
    "requirepass {value}\nmasterauth x",
    "postgres://ada:{value}@db/shop",
    "jdbc:postgresql://db/shop?user=ada&password={value}",
    "machine example.com login ada password {value}",
]


def corpus() -> list[tuple[str, str, str]]:
    rng = random.Random(11)
    made = []
    for form, pattern in FORMS.items():
        for name in NAMES:
            value = rng.choice(passwords(rng))
            made.append((form, pattern.format(name=name, value=value), value))
    for pattern in BY_THEMSELVES:
        made += [("by itself", pattern.format(value=value), value) for value in passwords(rng)]
    return made


def test_98_of_100_passwords_are_found_by_their_place() -> None:
    made = corpus()
    missed = [(form, text) for form, text, value in made if value in redact(text)]
    assert len(made) > 900
    assert len(missed) <= len(made) * 0.02, missed
    for _, text, _ in made:
        once = redact(text)
        assert redact(once) == once


@pytest.mark.parametrize(
    "text",
    [
        "define('DB_PASSWORD', 'letmeinplease');",
        'props.setProperty("db.password", "letmeinplease");',
        "getenv('DB_PASSWORD', 'letmeinplease')",
        "ENV DB_PASSWORD letmeinplease",
        "CREATE USER a IDENTIFIED WITH mysql_native_password BY 'letmeinplease';",
    ],
)
def test_a_plain_word_is_a_password_where_the_place_is_sure(text: str) -> None:
    assert "letmeinplease" not in redact(text)


def test_a_list_of_names_stays() -> None:
    for text in ('["password", "email"]', '("username", "password", "address")', "| password | string | required |"):
        assert redact(text) == text


def test_what_is_around_a_password_stays() -> None:
    for before, after in (
        ("export DB_PASSWORD=", "\nexport PORT=1"),
        ('connect(host, password="', '", port=1)'),
        ('{"user": "a", "password": "', '", "n": 1}'),
        ('{\\"password\\": \\"', '\\", \\"n\\": 1}'),
        ("Server=db;Password=", ";Encrypt=true"),
        ("user=ada&password=", "&go=1"),
        ("<password>", "</password>"),
        ("tool --password ", " --verbose"),
        ("mysql -u root -p", " shop"),
        ("IDENTIFIED BY '", "';"),
    ):
        assert redact(f"{before}Wombat77x{after}") == f"{before}[redacted:password]{after}"


def test_quotes_within_a_value_do_not_end_it() -> None:
    assert redact('password = "ab\\"cd-77" # x') == 'password = "[redacted:password]" # x'
    assert redact("password = 'ab\"cd-77'") == "password = '[redacted:password]'"
    assert redact('{\\"password\\": \\"ab\\\\\\"cd-77\\", 1') == '{\\"password\\": \\"[redacted:password]\\", 1'
    assert "cd" not in redact('password = "ab77cd\nnext line')  # never closed: to the end of its line
    assert redact('password = "ab77cd\nnext line').endswith("\nnext line")


# --- what looks random beside a name that tells ---

KEYS = """
    secret token api_key apiKey API-KEY access_token refresh_token client_secret clientSecret
    AWS_SECRET_ACCESS_KEY aws_secret_access_key auth_token authToken DATADOG_API_KEY dd_app_key MISTRAL_API_KEY
    COHERE_API_KEY secret_key SECRET_KEY_BASE private_key AccountKey SharedAccessKey credentials _authToken
    CI_TOKEN HEROKU_API_KEY postmark_server_token signing_secret encryption_key JWT_SECRET bearer_token npm_auth
    webhook_secret sonar.token
""".split()  # noqa: SIM905 - data, read as text
KEY_FORMS = [
    "{name}={value}",
    '{name} = "{value}"',
    "{name}: {value}",
    '{{"{name}": "{value}"}}',
    '{{\\"{name}\\": \\"{value}\\"}}',
    "tool --{name} {value}",
    "tool --{name}={value}",
    "?a=1&{name}={value}&b=2",
    "X-{name}: {value}",
    "<{name}>{value}</{name}>",
    '{{"name": "{name}", "value": "{value}"}}',
    "{name} == '{value}'",
    *(FORMS[form] for form in list(FORMS)[list(FORMS).index("make, if unset") :]),
    "Your {name} is: {value}",
]


def test_random_values_beside_telling_names_are_gone() -> None:
    rng = random.Random(12)
    makes = [
        lambda: chars(rng, ALNUM, rng.randint(20, 44)),
        lambda: hexes(rng.choice((32, 40, 64)))(rng),
        lambda: chars(rng, BASE64, 40),
        lambda: chars(rng, BASE64, 86) + "==",
        lambda: uuid(rng),
        lambda: chars(rng, string.ascii_lowercase + string.digits, rng.randint(16, 40)),
        lambda: chars(rng, string.ascii_uppercase + "234567", rng.choice((16, 32, 52))),
    ]
    made = []
    for form in KEY_FORMS:
        for name in KEYS:
            value = rng.choice(makes)()
            made.append((form.format(name=name, value=value), value))
    missed = [text for text, value in made if value in redact(text)]
    assert len(missed) <= len(made) * 0.02, missed


HEADERS = [
    "Authorization: Basic {}",
    "authorization: Bearer {}",
    'curl -H "Authorization: Bearer {}" https://x',
    "headers = {{'Authorization': 'Bearer {}'}}",
    "Proxy-Authorization: Basic {}",
    '\\"Authorization\\": \\"Token {}\\"',
    "Authorization: SSWS {}",
    "Cookie: sid={}; theme=dark",
    "Set-Cookie: session={}; Path=/; HttpOnly",
    '-H "Cookie: PHPSESSID={}"',
    "JSESSIONID={}",
    "Bearer {}",
]


@pytest.mark.parametrize("form", HEADERS)
def test_headers_and_cookies_are_gone(form: str) -> None:
    rng = random.Random(form)
    for _ in range(20):
        value = chars(rng, ALNUM, 32)
        clean = redact(form.format(value))
        assert value not in clean
        assert redact(clean) == clean


# --- what is no secret ---

ORDINARY = [
    "password = None",
    "password: str",
    "def login(user: str, password: str = '') -> None:",
    "password = getpass.getpass()",
    "password=getpass('Password: ')",
    "password = os.environ['DB_PASSWORD']",
    'password = os.environ.get("DB_PASSWORD")',
    "password = os.getenv('DB_PASSWORD', '')",
    "password: process.env.DB_PASSWORD,",
    "password = self.password",
    "self.password = password",
    "connect(user=user, password=password)",
    "connect(password=config.password, host=host)",
    "password: ${DB_PASSWORD}",
    "PASSWORD=$DB_PASSWORD",
    'PASSWORD="$(pass show db)"',
    "password: {{ .Values.password }}",
    "password: <password>",
    "password: '<your password>'",
    "password=***",
    "password: ********",
    'password = "changeme"',
    'password = "your-password-here"',
    "password: string;",
    "password?: string | null",
    "const password = req.body.password;",
    "let password = useState('');",
    "private String password;",
    "password = forms.CharField(widget=forms.PasswordInput)",
    '<input type="password" name="password" autocomplete="current-password">',
    "password: Please enter your password",
    '"password": "The password must have at least 8 characters."',
    "if len(password) < 8:",
    "min_password_length = 8",
    "password_file = /run/secrets/db",
    "PASSWORD_HASHERS = ['django.contrib.auth.hashers.Argon2PasswordHasher']",
    "PWD=/home/ada/shop",
    "OLDPWD=/home/ada",
    "pass",
    "    pass  # nothing to do",
    "bypass: true",
    "compass = 'north77'",
    "passed: 12 tests",
    "the password is required",
    "forgot password? click here",
    "token = next(tokens)",
    "token: Token",
    "tokens = tokenizer.encode(text)",
    "max_tokens: 4096",
    "token_type: Bearer",
    "access_token = response.json()['access_token']",
    "api_key = settings.API_KEY",
    "api_key: ${{ secrets.API_KEY }}",
    "secret_name: my-app-credentials",
    "secretKeyRef: {name: db, key: password}",
    "key: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "cache_key = 'user:1234567890abcdef1234'",
    "primary_key=True",
    "sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "commit 1f3870be274f6c49b3e31a0c6728957f1f3870be",
    "id = 550e8400-e29b-41d4-a716-446655440000",
    "session_id: 550e8400-e29b-41d4-a716-446655440000",
    'etag: "33a64df551425fcc55e4d42a148795d9f25f89d4"',
    "resolved: sha512-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "integrity=sha384-oqVuAfXRKap7fdgcCY5uykM6+R9GqQ8K/uxy9rx7HNQlGYl1kPzQho1wx4JwY8wC",
    "Authorization: Bearer $TOKEN",
    "Authorization: Bearer {token}",
    "Authorization: Bearer <token>",
    "Authorization: Basic authentication is used",
    "author: Ada Lovelace",
    "authenticated = True",
    "auth = HTTPBasicAuth(user, password)",
    "Cookie: name=value",
    "cookie = SimpleCookie()",
    "cookies: dict[str, str]",
    "mysql -u root -p shop",
    "mkdir -p build/output77",
    "curl -u $USER:$PASSWORD https://x",
    "docker run -p 8080:8080 x",
    "signature = inspect.signature(function)",
    "keyboard: us-intl-77",
    "the key = value form",
    "monkey = 'abcdefgh12345678abcd'",
    "public_key: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822c",
    "password=[redacted:password]",
    "https://example.com/reset?token=[redacted:secret]",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_placeholders_variables_and_code_are_no_secrets(text: str) -> None:
    assert redact(text) is text
    assert redact(f"first\n{text}\nlast") == f"first\n{text}\nlast"


# --- the same, where name and value are fields of a JSON value ---


def test_a_field_whose_name_tells_hides_its_value() -> None:
    token = chars(random.Random(1), ALNUM, 32)
    value = {
        "password": "Wombat77x",
        "env": [{"name": "DB_PASSWORD", "value": "Wombat77x"}, {"name": "PORT", "value": "8080"}],
        "headers": {"Authorization": f"Bearer {token}", "X-Api-Key": token, "Cookie": f"sid={token}"},
        "args": ["tool", "--password", "Wombat77x", "--verbose"],
        "token": "short",
        "tokens": 12,
        "key": hexes(40)(random.Random(2)),
        "api_keys": [token, "x"],
    }
    clean = redact_all(value)
    assert "Wombat" not in str(clean)
    assert token not in str(clean)
    assert clean["args"] == ["tool", "--password", "[redacted:password]", "--verbose"]
    assert clean["env"][1] == value["env"][1]
    assert [clean[name] for name in ("token", "tokens", "key")] == [value[name] for name in ("token", "tokens", "key")]
    assert redact_all(clean) == clean


def test_ordinary_values_are_returned_as_they_are() -> None:
    value = {"token_type": "Bearer", "key": "a", "keys": ["x", "y"], "auth": {"kind": "none"}, "hash": HEX * 4}
    assert redact_all(value) == value
