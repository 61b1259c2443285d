"""What denied files hold is never kept, whichever tool of whichever host touched them; the path itself stays."""

from __future__ import annotations

import json
import re

import pytest

from foreword.redact import shorten
from foreword.redact.files import MARK, denied, without_denied
from tests.corpora import assert_holds, read_corpus
from tests.growth import assert_linear
from tests.tables import table

CANARY = "canary-wombat"


@pytest.mark.parametrize(
    "path",
    """.env /srv/app/.env .env.local config/.env.production prod.env .envrc server.pem tls/private.key id_rsa
    /home/ada/.ssh/id_ed25519 .ssh/config .ssh/keys/deploy .netrc .pgpass .npmrc .pypirc .git-credentials store.p12
    store.pfx a.jks b.keystore c.kdbx /home/ada/.aws/credentials .kube/config .docker/config.json secrets.yaml
    config/secrets.json service-account.json service-account-prod.json my-service-account.json client_secret_1.json
    .config/gcloud/application_default_credentials.json terraform.tfstate C:\\Users\\ada\\.ssh\\id_rsa .ENV
    /proc/self/environ ~/.aws/credentials .env-prod .env_local .flaskenv .dev.vars prod.tfvars x.auto.tfvars.json
    terraform.tfstate.backup .m2/settings.xml /home/ada/.m2/settings-security.xml .gradle/gradle.properties pip.conf
    .config/pip/pip.conf .s3cfg kubeconfig staging.kubeconfig .vault_pass.txt vault-password .bash_history
    /root/.zsh_history .psql_history fish_history /etc/shadow .gemini/oauth_creds.json .codex/auth.json
    .claude/.credentials.json .local/share/opencode/auth.json .config/github-copilot/apps.json""".split(),  # noqa: SIM905 - data, read as text
)
def test_files_that_hold_secrets_are_denied(path: str) -> None:
    assert denied(path)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "SECRET=1\nB=2",
        "x" * 3000 + ".env",
        *""".env.example .env.sample .env.template id_rsa.pub .ssh/known_hosts env.py environment.md keys.py key.ts
    src/secrets_of_success.md docs/pem.md config.json .docker/daemon.json .kube/cache/x account.json environ.py
    README.md a/b/c .envelope sshd_config package.json variables.tf main.tf prod.tfvars.example settings.xml
    gradle.properties history.py shadow.css pip.md docs/kubeconfig.md vault.py auth.json""".split(),  # noqa: SIM905 - data, read as text
    ],
)
def test_other_files_are_not(path: str) -> None:
    assert not denied(path)


def test_a_setting_adds_patterns() -> None:
    more = ("*.vault", "deploy/prod/*", "token.txt")
    assert denied("a/b.vault", more)
    assert denied("/x/deploy/prod/deep/file", more)
    assert denied("token.txt", more)
    assert not denied("deploy/staging/file", more)


ABOUT = {"session_id": "s1", "cwd": "/p", "tool_use_id": "t1"}
CALLS = {
    "claude read": {
        "tool_name": "Read",
        "tool_input": {"file_path": "/p/.env"},
        "tool_response": {"type": "text", "file": {"filePath": "/p/.env", "content": CANARY, "numLines": 2}},
    },
    "claude write": {
        "tool_name": "Write",
        "tool_input": {"file_path": "/p/.env", "content": CANARY},
        "tool_response": {"filePath": "/p/.env", "content": CANARY, "structuredPatch": []},
    },
    "claude edit": {
        "tool_name": "Edit",
        "tool_input": {"file_path": "/p/.env", "old_string": CANARY, "new_string": f"x{CANARY}"},
        "tool_response": {"originalFile": CANARY, "structuredPatch": [{"lines": [f"-{CANARY}", f"+x{CANARY}"]}]},
    },
    "claude grep": {"tool_name": "Grep", "tool_input": {"pattern": "KEY", "path": ".env"}, "tool_response": CANARY},
    "claude batch": {
        "tool_calls": [{"tool_name": "Read", "tool_input": {"file_path": "/p/.env"}, "tool_response": CANARY}]
    },
    "failure": {"tool_name": "Bash", "tool_input": {"command": "cat .env"}, "error": CANARY},
    "codex patch": {
        "tool_name": "apply_patch",
        "tool_input": {"command": f"*** Begin Patch\n*** Update File: .env\n-{CANARY}\n+x{CANARY}\n*** End Patch"},
        "tool_response": CANARY,
    },
    "codex patch of input": {
        "tool_name": "apply_patch",
        "tool_input": {"input": f"*** Begin Patch\n*** Add File: .env\n+{CANARY}\n*** End Patch"},
        "tool_response": "Done",
    },
    "codex list": {"tool_input": {"command": ["bash", "-lc", "cat .env"]}, "tool_response": CANARY},
    "gemini": {
        "tool_name": "read_file",
        "tool_input": {"absolute_path": "/p/.env"},
        "tool_response": {"llmContent": CANARY, "returnDisplay": CANARY},
    },
    "copilot": {"toolName": "view", "toolArgs": {"path": "/p/.env"}, "toolResult": {"textResultForLlm": CANARY}},
    "input as text": {"toolArgs": '{"path": "/p/.env"}', "toolResult": {"textResultForLlm": CANARY}},
    "command as text": {"toolArgs": '{"command": "cat .env"}', "toolResult": {"textResultForLlm": CANARY}},
    "opencode": {"tool": "read", "args": {"filePath": "/p/.env"}, "output": CANARY, "metadata": {"preview": CANARY}},
    "opencode nested": {"input": {"tool": "read", "args": {"filePath": "/p/.env"}}, "output": {"output": CANARY}},
    "a field we do not know": {"tool_input": {"file_path": "/p/.env"}, "new_field": {"deep": [CANARY]}},
}


@pytest.mark.parametrize("name", CALLS)
def test_the_contents_go_and_the_path_stays(name: str) -> None:
    payload = {**ABOUT, **CALLS[name]}
    clean = without_denied(payload)
    shown = json.dumps(clean)
    assert CANARY not in shown
    assert ".env" in shown
    assert MARK in shown
    assert [clean[key] for key in ABOUT] == list(ABOUT.values())
    assert without_denied(clean) == clean


@pytest.mark.parametrize(
    "command",
    [
        "cat .env",
        "cd app && cat config/.env.production | head",
        "head -c 100 ~/.ssh/id_rsa",
        "printenv",
        "env",
        "env | sort",
        "sudo env",
        "export -p",
        "echo x; printenv AWS_KEY",
        "aws configure get aws_secret_access_key",
        "gh auth token",
        "kubectl get secret db -o yaml",
        "vault kv get secret/db",
        "TOKEN=$(gcloud auth print-access-token)",
        "openssl rsa -in server.pem",
        "source .env && run",
        'grep KEY "/srv/app/.env"',
        "cat .env*",
        "cat .en?",
        "head -n 3 config/*.pem",
        "cat {.env,README.md}",
        "find . -name '.env*' | xargs cat",
        "git show HEAD:.env",
        "docker exec app env",
        "docker compose exec -T web printenv",
        "docker run --rm -e A=1 image env",
        "kubectl exec -n shop pod/web -- env",
        "kubectl exec web -- sh -c 'env | sort'",
        "ssh deploy@host env",
        'ssh host "printenv DATABASE_URL"',
        "export",
        "set | grep -i key",
        "declare -p",
        'python -c "import os; print(os.environ)"',
        "python3 -c 'import os; print(dict(os.environ))'",
        """python -c 'import os; print(os.environ["API_TOKEN"])'""",
        "node -e 'console.log(process.env)'",
        "ruby -e 'p ENV.to_h'",
        *("(env)", "env &", "if true; then env; fi", "FOO=1 printenv", "/usr/bin/env"),
        *("timeout 5 env", "uv run env", "kubectl -n shop get secret db -o yaml", "docker compose -f a.yml config"),
        *("grep -n foo a.py; python -c 'import os; print(os.environ)'", "rg foo && node -p process.env"),
        *(
            "cmd /c set",
            "fc -l",
            "npm run env",
            "aws-vault exec x -- env",
            "pass db",
            "systemctl show web -p Environment",
        ),
        *("kubectl set env deploy/web --list", "cat ~/.claude.json", "cat wp-config.php", "infisical export"),
        *("dotenv list", "ps auxe", "ps eww -p 7", "cat /run/secrets/db", "docker-compose config", "sops decrypt x"),
        *("php -r 'print_r($_SERVER);'", "vercel env ls", "terraform state pull", "env --null", "ansible-vault view x"),
        *("cd ~/.ssh && cat *", "cd ~/.aws; cat credentials", 'cat .e"n"v', "cat .\\env"),
        *("env -u HOME", "env A=1", "env --ignore-environment"),
        *("ruby -e 'p ENV'", "docker inspect app", "cat .*", "cat ./.??*", "cat {a,b}/.{env,x}"),
    ],
)
def test_what_a_command_prints_of_secrets_goes_and_the_command_stays(command: str) -> None:
    payload = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_response": {"stdout": CANARY}}
    clean = without_denied(payload)
    assert clean["tool_input"]["command"] == command
    assert clean["tool_response"] == {"stdout": MARK}


@pytest.mark.parametrize(
    "command",
    [
        f"echo 'KEY={CANARY}' > .env",
        f"cat > .env <<EOF\nKEY={CANARY}\nEOF",
        f"printf {CANARY} | tee -a .env",
        f"sed -i s/old/{CANARY}/ .env",
    ],
)
def test_a_command_that_writes_keeps_the_path_alone(command: str) -> None:
    clean = without_denied({"tool_input": {"command": command}, "tool_response": ""})
    assert clean["tool_input"]["command"] == f"{MARK} .env"


@pytest.mark.parametrize(
    "command",
    [
        "make test",
        "env FOO=1 make test",
        "cat README.md",
        "ls .env.example",
        "git status",
        "export PATH=x",
        "set -euo pipefail; make",
        "ls env",
        "docker exec app ls",
        "grep -rn 'os.environ' src",
        "rg process.env",
        """python -c 'import os; os.environ[\"LANG\"] = \"C\"; print(1)'""",
        "ls *.py",
        "cat src/*",
        "history.py --help",
        "node -e 'console.log(process.env.NODE_ENV)'",
        "ssh host uptime",
        "kubectl get pods",
        *("ps aux", "ps -ef", "ps -e | grep node", "terraform plan", "docker ps", "gpg --verify x", "pip install x"),
    ],
)
def test_ordinary_calls_are_not_touched(command: str) -> None:
    payload = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_response": {"stdout": CANARY}}
    assert without_denied(payload) == payload


OUTPUTS = {
    "coloured": f"\x1b[35msrc/a.py\x1b[m:x = 1\n\x1b[35m.env\x1b[m:KEY={CANARY}\nsrc/b.py:y = 2",
    "ends with a zero": f"src/a.py\0x = 1\n.env\0KEY={CANARY}\nsrc/b.py\0y = 2",
    "before a numbered name": f"x = 1\nprod.env:KEY={CANARY}\n01-init.sql:y = 2",
    "below a numbered folder": f"/app-2-x/a.py-5-x = 1\n/app-2-x/.env-5-KEY={CANARY}\n/app-2-x/b.py-9-y = 2",
    "grep": f"src/a.py:3:x = 1\n./.env:2:KEY={CANARY}\nsrc/b.py:9:y = 2",
    "context": f"src/a.py-3-x = 1\nconfig/.env-2-KEY={CANARY}\nconfig/.env:3:B={CANARY}\nsrc/b.py:9:y = 2",
    "without numbers": f"src/a.py:x = 1\n.env.local:KEY={CANARY}\nsrc/b.py:y = 2",
    "of a commit": f"HEAD:src/a.py:x = 1\nHEAD:.env:KEY={CANARY}\nHEAD:src/b.py:y = 2",
    "headings": f"src/a.py\n3:x = 1\n\n.env\n2:KEY={CANARY}\n7:B={CANARY}\n\nsrc/b.py\n9:y = 2",
    "tails": f"==> a.py <==\nx = 1\n\n==> .env <==\nKEY={CANARY}\n\nB={CANARY}\n\n==> b.py <==\ny = 2",
    "files": f"File: src/a.py\nL3: x = 1\n---\nFile: .env\nL2: KEY={CANARY}\n---\nFile: src/b.py\nL9: y = 2",
    "json lines": "\n".join(
        json.dumps({"type": "match", "data": {"path": {"text": path}, "lines": {"text": text}}}, separators=(",", ":"))
        for path, text in (("src/a.py", "x = 1"), ("./.env", f"KEY={CANARY}"), ("src/b.py", "y = 2"))
    ),
    "one JSON value": json.dumps([{"file": "a.py", "text": "x = 1"}, {"file": ".env", "text": CANARY}, "y = 2"]),
    "JSON by file": json.dumps({"a.py": ["x = 1"], ".env": [f"KEY={CANARY}"], "b.py": {"text": "y = 2"}}),
    "headings without numbers": f"src/a.py\nx = 1\n\n.env\nKEY={CANARY}\n\nB={CANARY}\n\nsrc/b.py\ny = 2",
    "a heading without numbers first": f".env\nKEY={CANARY}\nB: {CANARY}\n\nsrc/b.py\nx = 1\ny = 2",
    "diff": f"diff -r a/a.py b/a.py\n1c1\n< x = 1\ndiff -r a/.env b/.env\n1c1\n< KEY={CANARY}\n---\n> B={CANARY}\n"
    "diff -r a/b.py b/b.py\n< y = 2",
    "colons": f"/p/a.py:\n  Line 3: x = 1\n\n/p/.env:\n  Line 2: KEY={CANARY}\n\n/p/b.py:\n  Line 9: y = 2",
}


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize(
    "call",
    [
        {"tool_name": "Bash", "tool_input": {"command": "grep -rn KEY ."}, "tool_response": {"stdout": ""}},
        {"tool_name": "Grep", "tool_input": {"pattern": "KEY"}, "tool_response": {"content": ""}},
        {"toolName": "rg", "toolArgs": {"pattern": "KEY"}, "toolResult": {"textResultForLlm": ""}},
        {"tool": "grep", "args": {"pattern": "KEY"}, "output": ""},
    ],
    ids=["bash", "claude", "copilot", "opencode"],
)
def test_a_search_over_a_folder_loses_the_lines_of_denied_files_alone(name: str, call: dict[str, object]) -> None:
    output = OUTPUTS[name]
    payload = json.loads(json.dumps(call).replace('""', json.dumps(output)))
    shown = json.dumps(clean := without_denied(payload))
    assert CANARY not in shown
    assert ".env" in shown
    assert "x = 1" in shown
    assert "y = 2" in shown
    assert without_denied(clean) == clean


@pytest.mark.parametrize("field", ["glob", "include", "includePattern", "globs"])
@pytest.mark.parametrize("glob", [".env*", "**/.env", "*.pem", "**/*.{pem,key}", "config/.env.*", "{a,b}/**/{.env,x}"])
def test_a_search_limited_to_denied_files_is_hidden_whole(field: str, glob: str) -> None:
    payload = {"tool_name": "Grep", "tool_input": {"pattern": "KEY", field: glob}, "tool_response": {"content": CANARY}}
    assert CANARY not in json.dumps(without_denied(payload))


@pytest.mark.parametrize(
    "command", ["git ls-files | grep env | xargs cat", "fd -H env -x cat", "for f in conf/*; do cat $f; done"]
)
def test_variables_lose_their_values_where_the_file_is_not_named(command: str) -> None:
    output = f"DEBUG=1\nKEY={CANARY}\nexport TOKEN={CANARY}\nplain text"
    clean = without_denied({"tool_input": {"command": command}, "tool_response": {"stdout": output}})
    assert clean["tool_response"]["stdout"] == f"DEBUG={MARK}\nKEY={MARK}\nexport TOKEN={MARK}\nplain text"
    assert without_denied(clean) == clean


@pytest.mark.parametrize("form", ["==> {} <==", "File: {}", "/p/{}:", "\n{}", "\n{}\n1:x"])
def test_a_heading_in_what_is_left_out_of_a_long_output_counts_for_its_tail(form: str) -> None:
    before = form.format("a.py") + "\nx = 1" + "\nline of a source" * 20_000
    output = f"{before}\n{form.format('.env')}\n" + f"9:KEY={CANARY}\n" * 3_000
    payload = {"tool_input": {"command": "rg KEY"}, "tool_response": {"stdout": output}}
    short = shorten(payload, max_chars=8192)
    assert CANARY in json.dumps(short)
    shown = json.dumps(without_denied(short))
    assert CANARY not in shown
    assert "line of a source" in shown
    other = shorten({**payload, "tool_response": {"stdout": output.replace(".env", "b.py")}}, max_chars=8192)
    assert without_denied(other) == other


def test_values_in_the_output_of_an_unknown_file_are_hidden() -> None:
    for command in ("cat $(git ls-files | grep env)", 'cat "$FILE"', "head -20 `find . -type f`"):
        output = f"API={CANARY}\ncount = 3\nexport TOKEN={CANARY}"
        clean = without_denied({"tool_input": {"command": command}, "tool_response": {"stdout": output}})
        assert clean["tool_response"]["stdout"] == f"API={MARK}\ncount = 3\nexport TOKEN={MARK}"


def test_words_about_a_file_are_kept() -> None:
    output = "Loading prod.env\n10:23:45 starting\nError: cannot load .env: file not found\nTraceback"
    payload = {"tool_input": {"command": "make run"}, "tool_response": {"stdout": output}}
    assert without_denied(payload) == payload


def test_a_listing_of_files_is_kept() -> None:
    for output in (".\n.env\nsrc\nREADME.md", ".env\nREADME.md\nsrc", "a.py\n\n.env\nb.py"):
        payload = {"tool_input": {"command": "ls -a"}, "tool_response": {"stdout": output}}
        assert without_denied(payload) == payload


def test_an_output_of_json_that_is_too_deep_to_be_walked_is_kept_as_lines() -> None:
    for depth in (100, 300, 500, 900, 5_000):
        output = f'{"[" * depth}"walrus"{"]" * depth}'
        payload = {"tool_input": {"command": "make"}, "tool_response": {"stdout": output}}
        assert without_denied(payload) == payload


def test_a_diff_loses_the_lines_of_denied_files_alone() -> None:
    diff = f"diff --git a/.env b/.env\n--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-{CANARY}\n+x\n"
    diff += "diff --git a/app.py b/app.py\n--- a/app.py\n+++ b/app.py\n@@ -1 +1 @@\n-a = 1\n+a = 2\n"
    [clean] = without_denied([diff])
    assert CANARY not in clean
    assert "+a = 2" in clean
    assert "+++ b/.env" in clean
    assert without_denied([clean]) == [clean]


def test_a_pattern_of_many_stars_reads_a_path_once() -> None:
    """It would take minutes where every star tries every place."""
    assert not denied("a" * 1000, ("*a*a*a*a*a*a*b",))
    assert denied("x-a-b-c.thing", ("*a*b*.thing",))
    assert not denied("x-b-a-c.thing", ("*a*b*.thing",))


# --- commands of the corpora, in the shapes in which agents send a command and what it printed ---

DIFF = f"diff --git a/.env b/.env\n--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-{CANARY}\n+{CANARY}2\n"


def calls_of(command: str, output: str) -> list[dict[str, object]]:
    run = {"command": command}
    return [
        {"tool_name": "Bash", "tool_input": run, "tool_response": {"stdout": output}},
        {"tool_name": "Bash", "tool_input": {"command": ["bash", "-lc", command]}, "tool_response": output},
        {"tool_name": "run_shell_command", "tool_input": run, "tool_response": {"llmContent": output}},
        {"toolName": "bash", "toolArgs": run, "toolResult": {"textResultForLlm": output}},
        {"toolName": "bash", "toolArgs": json.dumps(run), "toolResult": {"textResultForLlm": output}},
        {"tool": "bash", "args": run, "output": output, "metadata": {"output": output}},
        {"tool_name": "Shell", "tool_input": run, "tool_output": json.dumps({"output": output, "exitCode": 0})},
        {"command": command, "output": output, "duration": 5},
    ]


def hides_what_it_prints(command: str) -> bool:
    output = DIFF if re.match(r"git (?:stash show|log|diff|show (?!\S*:))", command) else f"one\nKEY={CANARY}\n"
    return all(CANARY not in json.dumps(without_denied(call)) for call in calls_of(command, output))


def keeps_what_it_prints(command: str) -> bool:
    return all(CANARY in json.dumps(without_denied(call)) for call in calls_of(command, f"one\ntwo {CANARY}\n"))


def test_what_commands_print_of_secrets_goes_for_every_agent() -> None:
    assert_holds(read_corpus("secret_commands.txt", held_out=False), hides_what_it_prints)


def test_what_ordinary_commands_print_is_kept_for_every_agent() -> None:
    assert_holds(read_corpus("plain_commands.txt", held_out=False), keeps_what_it_prints)


@table(
    "piece",
    ["echo ", "cat <<a\n", "sh -c '", 'x secrets get "', "echo $", "a --show-", "vault-", "get-secret-", "ls .e; "],
)
def test_a_long_command_is_read_in_linear_time(piece: str) -> None:
    assert_linear(lambda command: without_denied({"tool_input": {"command": command}}), piece, size=4_000)


@pytest.mark.prove
def test_what_commands_that_were_kept_aside_print_of_secrets_goes() -> None:
    assert_holds(read_corpus("secret_commands.txt", held_out=True), hides_what_it_prints)


@pytest.mark.prove
def test_what_ordinary_commands_that_were_kept_aside_print_is_kept() -> None:
    assert_holds(read_corpus("plain_commands.txt", held_out=True), keeps_what_it_prints)
