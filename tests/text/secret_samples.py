"""Texts with secrets in them, made at run time so that no scanner takes this file for a leak."""

from __future__ import annotations

import base64
import json
import random
import string
from typing import NamedTuple

_DRAW = random.Random(20_26)  # noqa: S311 - nothing is protected by it
ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"


class SecretSample(NamedTuple):
    """A text and the parts of it that must not be read."""

    text: str
    secrets: tuple[str, ...]


def draw(characters: str, length: int) -> str:
    """Return a random word with at least one digit and one letter."""
    return "".join(_DRAW.choice(characters) for _ in range(length - 2)) + "a7"


def _token(prefix: str, characters: str = ALNUM, length: int = 40) -> SecretSample:
    body = draw(characters, length)
    return SecretSample(f"use {prefix}{body} for it", (body,))


def _upper(prefix: str, length: int) -> SecretSample:
    body = draw(string.ascii_uppercase + string.digits, length).upper()
    return SecretSample(f"use {prefix}{body} for it", (body,))


def _around(before: str, after: str = "", length: int = 12, characters: str = ALNUM) -> SecretSample:
    secret = draw(characters, length)
    return SecretSample(f"{before}{secret}{after}", (secret,))


def _lines(number: int, width: int = 64) -> list[str]:
    return [draw(ALNUM + "+/", width) for _ in range(number)]


def _key(title: str, *, header: str = "", end: bool = True, begin: bool = True, lead: str = "") -> SecretSample:
    lines = [*_lines(6), draw(ALNUM, 31) + "="]
    text = [f"-----BEGIN {title}-----"] if begin else []
    text += [*header.split("\n")] if header else []
    text += [lead + line for line in lines]
    text += [f"-----END {title}-----"] if end else []
    return SecretSample("key:\n" + "\n".join(text) + "\n", tuple(lines))


_ENCRYPTED = f"Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,{draw(HEX, 32).upper()}\n"
_PRIVATE = "PRIVATE KEY"


def _nested(depth: int) -> SecretSample:
    secret = draw(ALNUM, 14)
    text = json.dumps({"host": "db", "dbPassword": secret, "port": 5432})
    for _ in range(depth):
        text = json.dumps({"arguments": text})
    return SecretSample(text, (secret,))


def _basic(before: str, after: str = "") -> SecretSample:
    secret = base64.b64encode(f"admin:{draw(ALNUM, 10)}".encode()).decode()
    return SecretSample(f"{before}{secret}{after}", (secret,))


def _escaped_key() -> SecretSample:
    made = _key(f"RSA {_PRIVATE}")
    return SecretSample(json.dumps({"private_key": made.text, "client_id": "7"}), made.secrets)


def _source_key() -> SecretSample:
    made = _key(_PRIVATE)
    return SecretSample("\n".join(f'    "{line}\\n"' for line in made.text.strip().split("\n")), made.secrets)


def _jwt() -> SecretSample:
    head, body = (base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (b'{"alg":"HS256"}', b'{"sub":"17"}'))
    secret = f"{head}.{body}.{draw(ALNUM, 43)}"
    return SecretSample(f"session {secret} ends", (secret,))


def _password_with(signs: str) -> str:
    return f"{draw(ALNUM, 4)}{signs}{draw(ALNUM, 5)}"


def _url(before: str, password: str, after: str) -> SecretSample:
    return SecretSample(f"{before}{password}{after}", tuple(part for part in (password, password[-5:]) if part))


def _between(before: str, secret: str, after: str = "") -> SecretSample:
    return SecretSample(f"{before}{secret}{after}", (secret,))


def _twice(before: str, line: str, after: str) -> SecretSample:
    return SecretSample(f"{before}{line}\n{line}{after}", (line,))


def _webhook() -> SecretSample:
    secret = draw(ALNUM, 24)
    return SecretSample(f"https://hooks.slack.com/services/T0{_up(8)}/B0{_up(8)}/{secret}", (secret,))


def _up(length: int) -> str:
    return draw(string.ascii_uppercase + string.digits, length).upper()


SAMPLES: dict[str, SecretSample] = {
    # private keys
    "rsa-key": _key(f"RSA {_PRIVATE}"),
    "pkcs8-key": _key(_PRIVATE),
    "ec-key": _key(f"EC {_PRIVATE}"),
    "openssh-key": _key(f"OPENSSH {_PRIVATE}"),
    "encrypted-pkcs8-key": _key(f"ENCRYPTED {_PRIVATE}"),
    "encrypted-rsa-key": _key(f"RSA {_PRIVATE}", header=_ENCRYPTED),
    "pgp-key": _key(f"PGP {_PRIVATE} BLOCK", header="Version: GnuPG v2 - x\nComment: a - b\n"),
    "key-without-end": _key(f"RSA {_PRIVATE}", end=False),
    "encrypted-key-without-end": _key(f"RSA {_PRIVATE}", header=_ENCRYPTED, end=False),
    "pgp-key-without-end": _key(f"PGP {_PRIVATE} BLOCK", end=False),
    "key-without-begin": _key(f"RSA {_PRIVATE}", begin=False),
    "key-in-a-diff": _key(_PRIVATE, lead="+", end=False),
    "key-in-numbered-lines": _key(_PRIVATE, lead="    12\u2192", end=False),
    "key-in-json": _escaped_key(),
    "key-in-source": _source_key(),
    "age-key": _upper("AGE-SECRET-KEY-1", 58),
    "putty-key": _twice("Private-Lines: 2\n", draw(ALNUM, 64), "\nPrivate-MAC: 0"),
    "json-web-key": _around('{"kty":"OKP","crv":"Ed25519","d":"', '","x":"y"}', 43),
    # prefixes
    "anthropic": _token("sk-" + "ant-api03-", ALNUM + "_-", 90),
    "openai": _token("sk-" + "proj-", ALNUM, 48),
    "openrouter": _token("sk-" + "or-v1-", HEX, 64),
    "google-key": _token("AI" + "za", ALNUM + "_-", 35),
    "google-oauth": _token("ya" + "29.", ALNUM + "_-", 60),
    "google-client-secret": _token("GOC" + "SPX-", ALNUM, 28),
    "github-classic": _token("gh" + "p_", ALNUM, 36),
    "github-app": _token("gh" + "s_", ALNUM, 36),
    "github-fine-grained": _token("github" + "_pat_", ALNUM + "_", 82),
    "gitlab": _token("gl" + "pat-", ALNUM + "_-", 20),
    "gitlab-runner": _token("gl" + "rt-", ALNUM + "_-", 20),
    "slack-bot": _token("xo" + "xb-", string.digits + "-" + ALNUM, 50),
    "slack-app": _token("xa" + "pp-1-", ALNUM + "-", 60),
    "stripe": _token("sk" + "_live_", ALNUM, 24),
    "stripe-webhook": _token("wh" + "sec_", ALNUM, 32),
    "npm": _token("np" + "m_", ALNUM, 36),
    "pypi": _token("py" + "pi-AgEI", ALNUM + "_-", 150),
    "hugging-face": _token("h" + "f_", ALNUM, 34),
    "groq": _token("gs" + "k_", ALNUM, 52),
    "xai": _token("xa" + "i-", ALNUM, 80),
    "replicate": _token("r" + "8_", ALNUM, 37),
    "aws-key": _upper("AK" + "IA", 16),
    "aws-temporary-key": _upper("AS" + "IA", 16),
    "sendgrid": _between(f"SG.{draw(ALNUM, 22)}.", draw(ALNUM, 43)),
    "digitalocean": _token("dop" + "_v1_", HEX, 64),
    "atlassian": _token("ATA" + "TT3", ALNUM + "_-=", 180),
    "docker-hub": _token("dckr" + "_pat_", ALNUM + "_-", 27),
    "linear": _token("lin" + "_api_", ALNUM, 40),
    "shopify": _token("shp" + "at_", HEX, 32),
    "databricks": _token("da" + "pi", HEX, 32),
    "vault": _token("hv" + "s.", ALNUM + "_-", 90),
    "grafana": _token("gl" + "sa_", ALNUM + "_", 41),
    "sentry": _token("sn" + "trys_", ALNUM + "+/=_", 80),
    "planetscale": _token("pscale" + "_tkn_", ALNUM + "_-", 43),
    "postman": _token("PM" + "AK-", HEX + "-", 59),
    "pulumi": _token("pu" + "l-", HEX, 40),
    "rubygems": _token("ruby" + "gems_", HEX, 48),
    "supabase": _token("sb" + "p_", HEX, 40),
    "tailscale": _token("ts" + "key-auth-", ALNUM + "-", 40),
    "doppler": _token("d" + "p.pt.", ALNUM, 43),
    "mailgun": _token("ke" + "y-", HEX, 32),
    "new-relic": _upper("NR" + "AK-", 27),
    "figma": _token("fi" + "gd_", ALNUM, 40),
    "notion": _token("nt" + "n_", ALNUM, 46),
    "twilio": _token("S" + "K", HEX, 32),
    "telegram": _between("bot 123456789:AA", draw(ALNUM, 33)),
    "discord": _between(f"M{draw(ALNUM, 23)}.{draw(ALNUM, 6)}.", draw(ALNUM, 38)),
    "azure-client-secret": _between(f"it is {draw(ALNUM, 3)}8Q~", draw(ALNUM, 34)),
    "terraform": _between(f"{draw(ALNUM, 14)}.atlasv1.", draw(ALNUM, 67)),
    "jwt": _jwt(),
    "adafruit": _token("ai" + "o_", ALNUM, 28),
    "adobe": _token("p8" + "e-", HEX, 32),
    "alibaba": _token("LT" + "AI", ALNUM, 20),
    "artifactory": _token("cmVm" + "dGtu", ALNUM, 56),
    "asana": _between("use 1/1201234567890123:", draw(HEX, 32)),
    "asana-long": _between("use 2/1201234567890123/1201234567890124:", draw(HEX, 32)),
    "beamer": _token("b" + "_", ALNUM, 44),
    "circleci": _token("CCI" + "PRJ_", ALNUM + "_", 63),
    "clickhouse": _token("4b" + "1d", ALNUM, 38),
    "cloudflare-origin": _between(f"v1.0-{draw(HEX, 24)}-", draw(HEX, 146)),
    "firebase": _token("abcdefg:APA" + "91b", ALNUM + "_-", 134),
    "fireworks": _token("f" + "w_", ALNUM, 24),
    "flutterwave": _token("FLW" + "SECK_TEST-", HEX, 12),
    "harness": _between(f"pat.{draw(ALNUM, 22)}.{draw(HEX, 24)}.", draw(ALNUM, 20)),
    "infracost": _token("ic" + "o-", ALNUM, 32),
    "intra": _token("s-s4" + "t2ud-", HEX, 64),
    "launchdarkly": _between("sdk-12345678-89ab-4def-8123-", draw(HEX, 12)),
    "lob": _token("live" + "_", HEX, 35),
    "maxmind": _between(f"use {draw(ALNUM, 6)}_", draw(ALNUM, 29), "_mmk"),
    "neon": _token("np" + "g_", ALNUM, 12),
    "new-relic-insert": _token("NR" + "II-", ALNUM, 32),
    "new-relic-browser": _token("NR" + "JS-", HEX, 19),
    "nuget": _token("oy" + "2", string.ascii_lowercase + string.digits, 43),
    "octopus": _upper("AP" + "I-", 26),
    "one-password": _between(f"A3-{_up(6)}-{_up(11)}-{_up(5)}-", f"{_up(5)}-{_up(5)}"),
    "plaid": _between("access-sandbox-12345678-89ab-4def-8123-", draw(HEX, 12)),
    "settlemint": _token("sm_" + "pat_", ALNUM, 16),
    "sourcegraph": _token("sg" + "p_", HEX, 40),
    "sourcegraph-local": _token("sg" + "p_local_", HEX, 40),
    "square": _token("EA" + "AA", ALNUM + "_-", 60),
    "together": _token("tg" + "p_v1_", ALNUM + "_-", 43),
    "twitter": _between("A" * 21 + draw(ALNUM, 20) + "%2B", draw(ALNUM, 20) + "%3D" + draw(ALNUM, 40)),
    "vercel": _token("vc" + "p_", ALNUM, 56),
    "voyage": _token("pa" + "-", ALNUM, 43),
    "wallet": _token("xp" + "rv9s21ZrQH143K", ALNUM, 95),
    "yandex": _token("AQ" + "VN", ALNUM + "_-", 36),
    "yandex-session": _token("t1" + ".", ALNUM + "_-", 160),
    "token-after-escape": _around('{"text":"done\\n' + "gh" + "p_", '\\nnext"}', 36),
    "token-in-color": _around("\x1b[32m" + "gh" + "p_", "\x1b[0m", 36),
    "token-in-query-escape": _around("next%3D" + "gh" + "p_", "%26a", 36),
    # names
    "password-equals": _around("password=", " next"),
    "password-colon": _around("password: "),
    "password-quoted": _around('password = "', '"'),
    "password-words": SecretSample('password: "correct-horse-battery"', ("correct-horse",)),
    "password-camel-case": _around('dbPassword: "', '",'),
    "password-environment": _around("PGPASSWORD=", " psql -h db"),
    "password-letters": SecretSample("MYSQL_PWD=lettersonly mysql", ("lettersonly",)),
    "password-signs": SecretSample("DB_PASSWORD=p@ss,w0rd!x", ("p@ss", "w0rd")),
    "password-short-name": _around("DB_PASS=", "\nX=1"),
    "password-connection-string": _around("Server=db;User Id=sa;Password=", ";Encrypt=yes"),
    "password-odbc": _around("Driver={x};Uid=sa;Pwd=", ";"),
    "password-xml": _around("<password>", "</password>"),
    "password-xml-attribute": _around('<property name="password" value="', '"/>'),
    "password-manifest": _around("- name: DB_PASSWORD\n  value: "),
    "password-yaml": _around("spring:\n  datasource:\n    password: "),
    "password-in-json": _nested(0),
    "password-in-json-in-json": _nested(1),
    "password-in-json-three-deep": _nested(2),
    "password-html-escaped": _around("&quot;password&quot;:&quot;", "&quot;"),
    "password-markdown": _around("**Password:** "),
    "password-table": _around("| password | ", " |"),
    "password-sentence": _around("The password is ", ". Use it."),
    "password-typed": _around('const password: string = "', '";'),
    "password-item": _around('os.environ["DB_PASSWORD"] = "', '"'),
    "password-cut": _around('{"password": "'),
    "password-block": _around("password: >-\n    ", "\n", 16),
    "password-bytes": _around('app.secret_key = b"', '"', 24),
    "password-json-pass": _around('{"user": "me", "pass": "', '"}', 12),
    "password-psk": _around('network={\n  psk="', '"\n}'),
    "password-psk-hex": _around("psk=", "\n", 64, HEX),
    "password-short-word": _around("pw: "),
    "password-smart-quotes": _around("password = \u201c", "\u201d"),
    "password-wide-colon": _around("password\uff1a"),
    **{
        f"password-{language}": _around(f"{word}: ")
        for language, word in (
            ("french", "mot de passe"),
            ("german", "Kennwort"),
            ("spanish", "contrase\u00f1a"),
            ("portuguese", "senha"),
            ("russian", "\u043f\u0430\u0440\u043e\u043b\u044c"),
            ("chinese", "\u5bc6\u7801"),
        )
    },
    "passphrase": _around("passphrase: "),
    "secret-key-base": _around("secret_key_base: ", "", 64, HEX),
    "client-secret": _around('"client_secret": "', '"', 24),
    "aws-secret": _around("aws_secret_access_key = ", "", 40, ALNUM + "/+"),
    "aws-session": _around("AWS_SESSION_TOKEN=", "", 300, ALNUM + "/+="),
    "api-key": _around("export ACME_API_KEY='", "'", 20),
    "api-key-header": _around("X-Api-Key: ", "", 32),
    "token-equals": _around("token=", "", 20),
    "token-json": _around('{"token": "', '"}', 24),
    "token-npmrc": _around("//registry.acme.test/:_authToken=", "", 36),
    "auth-npmrc": _basic("_auth="),
    "auth-docker": _basic('{"auths":{"r.test":{"auth": "', '"}}}'),
    "kubeconfig-key": _around("    client-key-data: ", "", 200, ALNUM + "+/"),
    "kubeconfig-token": _around("    token: ", "", 60, ALNUM),
    "wireguard": _around("PrivateKey = ", "=", 43, ALNUM + "+/"),
    "webhook-secret": _around("WEBHOOK_SECRET=", "", 24),
    # headers
    "authorization-bearer": _around("Authorization: Bearer ", "", 40),
    "authorization-basic": _basic("Authorization: Basic "),
    "authorization-basic-json": _basic('{"Authorization": "Basic ', '"}'),
    "authorization-token": _around("authorization: token ", "", 40),
    "authorization-plain": _around('-H "Authorization: ', '"', 32),
    "authorization-digest": _around('Authorization: Digest username="a", nonce="x1", response="', '"', 32, HEX),
    "basic-alone": _basic("headers = 'Basic ", "'"),
    "bearer-alone": _around("curl -H 'x: Bearer ", "'", 32),
    "cookie": _around("Cookie: theme=dark; session=", "; lang=en", 32),
    "set-cookie": _around("set-cookie: sid=", "; Path=/; HttpOnly", 32),
    "set-cookie-list": _around('"set-cookie": ["sid=', '; Path=/"]', 40),
    "identity-token": _around('"identitytoken": "', '"', 40),
    "private-token-header": _around("PRIVATE-TOKEN: ", "", 26),
    # addresses
    "url-password": _url("postgresql://nexus:", draw(ALNUM, 9), "@db/nexus"),
    "url-password-at": _url("postgresql://nexus:", _password_with("@"), "@db.test/nexus"),
    "url-password-slash": _url("postgresql://nexus:", _password_with("/"), "@db.test:5432/nexus"),
    "url-password-both": _url("amqp://nexus:", _password_with("/@"), "@mq.test/vhost"),
    "url-password-colon": _url("redis://:", _password_with(":"), "@cache.test:6379/0"),
    "url-password-hash": _url("mongodb+srv://u:", _password_with("#"), "@c.test/?w=1"),
    "url-password-escaped": _url("postgres:\\/\\/u:", draw(ALNUM, 9), "@db.test\\/x"),
    "url-token": _around("https://", "@git.acme.test/x.git", 32),
    "sas": _around("https://a.blob.core.windows.net/c?sv=1&sig=", "&se=2", 44, ALNUM + "%"),
    "presigned": _around("https://b.s3.test/k?X-Amz-Date=1&X-Amz-Signature=", "", 64, HEX),
    "query-token": _around("https://x.test/hook?access_token=", "&a=1", 20),
    "query-key": _around("https://x.test/v1?key=", "", 24),
    "storage-key": _around("AccountName=a;AccountKey=", "==;E=x", 86, ALNUM + "+/"),
    "slack-webhook": _webhook(),
    "discord-webhook": _around("https://discord.com/api/webhooks/123456789012345678/", "", 68),
    # commands
    "option-password": _around("mytool --password ", " run"),
    "option-password-equals": _around("mytool --db-password=", " run"),
    "option-token": _around("gh auth --token ", "", 30),
    "option-in-list": _around('["x", "--password", "', '"]'),
    "config-set": _around("aws configure set aws_secret_access_key ", "", 40),
    "curl-user": _around("curl -s -u admin:", " https://x.test"),
    "curl-user-long": _around("curl --user 'admin:", "' https://x.test"),
    "mysql-password": _around("mysql -u root -p", " shop"),
    "sshpass": _around("sshpass -p ", " ssh x"),
    "docker-login": _around("docker login -u me -p ", " r.test"),
    "netrc": _around("machine api.test login me password "),
    "netrc-lines": _around("machine api.test\n  login me\n  password "),
    "pgpass": _around("db.test:5432:shop:me:"),
    "openssl": _around("openssl rsa -passin pass:", " -in x"),
    "sql": _around("CREATE USER me IDENTIFIED BY '", "';"),
    "sql-role": _around("ALTER ROLE me PASSWORD '", "';"),
    "bind-password": _around("bindpw "),
    "chpasswd": _around('echo "me:', '" | chpasswd'),
    "cmdkey": _around("cmdkey /add:srv /user:me /pass:"),
    "htpasswd": _around("htpasswd -b file me "),
    "net-use": _around("net use z: //srv/x /user:me "),
    "nmcli": _around("nmcli dev wifi connect home password "),
    "openssl-key": _around("openssl enc -aes-256-cbc -K ", " -in x", 64, HEX),
    "openssl-password": _around("openssl enc -aes-256-cbc -k ", " -in x"),
    "oracle-url": _around("jdbc:oracle:thin:scott/", "@//db:1521/x"),
    "powershell": _around('ConvertTo-SecureString -AsPlainText -Force "', '"'),
    "sqlcmd": _around("sqlcmd -S db -U sa -P ", " -Q x"),
    "sqlplus": _around("sqlplus scott/", "@orcl"),
    "sudo": _around("echo ", " | sudo -S ls"),
    "wpa-passphrase": _around("wpa_passphrase home "),
    "plist": _around("<key>password</key>\n\t<string>", "</string>"),
    "plist-token": _around("<dict><key>AccessToken</key><string>", "</string></dict>", 32),
    "wifi-code": _around("WIFI:T:WPA;S:home;P:", ";;"),
    "wifi-code-hidden": _around("WIFI:S:my home;H:true;T:WPA;P:", ";"),
    "url-encoded-json": _around("body=%7B%22user%22%3A%22me%22%2C%22password%22%3A%22", "%22%7D"),
    "url-encoded-json-blank": _around("body=%7B%22password%22%3A%20%22", "%22%7D"),
    "next-line": _around("Password:\n    ", "\nand then log in"),
    "next-line-api-key": _around("API key:\n", "\n", 32),
    "escaped-letter": _around('{"\\u0070assword": "', '"}'),
    "escaped-letters": _around('{"user": "me", "\\u0073\\u0065cret": "', '"}', 20),
    "gitlab-session": _around("_gitlab" + "_session=", "", 32, HEX),
    "google-refresh": _token("1/" + "/04", ALNUM + "_-", 60),
    "authress": _between(f"sc_{draw(HEX, 10)}.{draw(HEX, 5)}.acc-{draw(HEX, 14)}.", draw(ALNUM, 40)),
    "bedrock": _token("bedrock-api-" + "key-YmVkcm9jay5", ALNUM + "+/", 60),
    "bitwarden": _between("use 0.12345678-89ab-4def-8123-123456789abc.", draw(ALNUM, 30), f":{draw(ALNUM, 22)}=="),
    "clojars": _token("CLO" + "JARS_", string.ascii_lowercase + string.digits, 60),
    "cloudflare-token": _token("cfu" + "t_", ALNUM, 40),
    "docker-swarm": _token("SWM" + "TKN-1-", string.ascii_lowercase + string.digits, 50),
    "dropbox": _token("s" + "l.", ALNUM + "_-", 140),
    "eleven-labs": _token("s" + "k_", HEX, 48),
    "ghost": _between(f"use {draw(HEX, 24)}:", draw(HEX, 64)),
    "jwt-in-base64": _token("ZXlKaGJH" + "Y2lPaUpJVXpJMU5pSjku", ALNUM, 80),
    "k3s": _between(f"use K10{draw(HEX, 64)}::server:", draw(HEX, 32)),
    "langfuse": _token("sk-" + "lf-", HEX + "-", 36),
    "mailgun-new": _between(f"use {draw(HEX, 32)}-", f"{draw(HEX, 8)}-{draw(HEX, 8)}"),
    "modal": _token("a" + "s-", ALNUM, 22),
    "nats": _between("use SUA", "".join(_DRAW.choice(string.ascii_uppercase + "234567") for _ in range(55))),
    "runpod": _token("rp" + "a_", ALNUM, 40),
    "stellar": _between("use SB", "".join(_DRAW.choice(string.ascii_uppercase + "234567") for _ in range(54))),
    "stytch": _token("secret-" + "live-", ALNUM + "_-", 36),
    "tencent": _token("AK" + "ID", ALNUM, 32),
    "vault-old": _token("s" + ".", ALNUM, 24),
    "vercel-blob": _token("vercel_" + "blob_rw_", ALNUM + "_", 46),
    "volcano": _token("AK" + "LT", ALNUM, 44),
    "yandex-iam": _between(f"t1.{draw(ALNUM, 10)}.", draw(ALNUM, 86)),
    "base64-token-in-query": SecretSample(
        "https://x.test/?q=" + "gl" + "c_ab3%2F" + (_QUERY_SECRET := draw(ALNUM, 60)) + "&a=1", (_QUERY_SECRET,)
    ),
    "base64-token-in-color": _around("\x1b[1m" + "gl" + "c_", "\x1b[0m", 60),
    "named-in-color": _around("\x1b[32mACME_API_KEY\x1b[0m: \x1b[1m", "\x1b[0m", 32),
    "table-of-variables": _around("| `ACME_API_KEY` | `", "` |", 32),
    "token-sentence": _around("My ACME_API_KEY is ", ", keep it.", 32),
    "token-sentence-for": _around("The password for the admin is ", ", keep it."),
    "access-token-variable": _around("AZURE_DEVOPS_EXT_PAT=", "", 52),
    "aws-csv": _between(f"Access key ID,Secret access key\nAKIA{_up(16)},", draw(ALNUM, 40)),
    "php-define": _around("define( 'DB_PASSWORD', '", "' );"),
    "php-salt": _between("define('AUTH_SALT',        '", f"{draw(ALNUM, 20)} #!{{$|;{draw(ALNUM, 20)}", "');"),
    "code-arguments": _around('config.set("api_token", "', '")', 32),
    "terraform-variable": _around('variable "db_password" {\n  type = string\n  default = "', '"\n}'),
    "clojure": _around(':password "', '"'),
    "machine-key": _around('<machineKey validationKey="', '" />', 64, HEX),
    "recorded-request": _around('{"key":"token","value":"', '","type":"string"}', 40),
    "kubernetes-secret": _around("kind: Secret\nmetadata:\n  name: x\ndata:\n  db-conn: ", "==\n", 42),
    "kubernetes-secret-text": _around("apiVersion: v1\nstringData:\n  admin: ", "\nkind: Secret\n", 20),
    "function-key": _around("https://f.azurewebsites.test/api/x?code=", "==", 54),
    "saml": _around("SAMLResponse=", "", 300),
    "keytool": _around("keytool -storepass ", " -alias a"),
    "ssh-keygen": _around("ssh-keygen -t rsa -N '", "' -f k"),
    "sshpass-variable": _around("SSHPASS='", "' sshpass -e ssh x"),
    "fish": _around("set -gx ACME_API_KEY ", "", 40),
    "setx": _around('setx API_TOKEN "', '"', 30),
    "token-from-stdin": _around("echo ", " | gh auth login --with-token", 40),
    "vault-login": _around("vault login ", "", 26),
    "poetry-token": _around("poetry config pypi-token.pypi ", "", 40),
    "poetry-password": _around("poetry config http-basic.acme me "),
    "httpie-token": _around("http -A bearer -a ", " GET https://x.test", 40),
    "lftp": _around("lftp -u me,", " ftp.acme.test"),
    "mosquitto": _around("mosquitto_pub -u me -P ", " -t x"),
    "rclone": _around("rclone config create r sftp host h user u pass ", "", 22),
    "impacket": _around("secretsdump.py acme/me:", "@10.0.0.1"),
    "cisco": _around("username me password 7 ", "", 18, HEX),
    "snmp": _around("snmp-server community ", " RO"),
    "slapd": _around("rootpw "),
    "conda": _around("https://conda.acme.test/t/", "/channel", 36),
    "shadow": _between(f"root:$6${draw(ALNUM, 8)}$", draw(ALNUM, 86), ":1:"),
    "bcrypt": _between("me:$2b$12$", draw(ALNUM, 53)),
    "secret-word": SecretSample("password=hunter2secret", ("hunter2secret",)),
    "secret-word-number": SecretSample("db_password=acmesecret77", ("acmesecret77",)),
    "pwd-line": SecretSample("pwd=Winter2024!", ("Winter2024",)),
}
"""One text for each shape, by its name."""

ORDINARY = (
    "password = os.environ['DB_PASSWORD']",
    "password=self.password",
    "password:\n  description: The password of version2",
    "kind: Secret\ndata:\n  username: admin\n  password: <base64>\n",
    "kind: ConfigMap\ndata:\n  level: cG9zdGdyZXM9\n",
    '("token", "identifier_of_a_row")',
    "| token | the token that opens the door |",
    "the password for the admin is: whatever you like",
    'variable "db_password" {\n  default = ""\n}',
    "https://x.test/search?code=python-3.12&page=2",
    "the community decides",
    "join our community Discord2024!",
    "community support2go4you is here",
    r"date_pat = r'\d{4}-\d{2}-\d{2}'",
    r'URL_PAT = "^/api/v1/(?P<id>\d+)$"',
    r'IPV4_PAT = "(?:\d{1,3}\.){3}\d{1,3}"',
    'FILE_PAT = "report2024*.csv"',
    'file_pat: "src/v2/*.py"',
    'LS32_PAT = "(?:{hex}:{hex}|{ipv4})"',
    "find . -path ./mysql -prune -o -print",
    'find / -name "*mysql*" -print0',
    "docker run -d --name mongo -p 27017:27017 mongo:7",
    "docker login ghcr.io && docker run -p 8080:80 nginx",
    "docker login && npm run build -p tsconfig.json",
    "which mysql; ps -p12345",
    "curl https://x.test/setup | sudo -u app:app1 sh",
    "oc login; mkdir -p src/main/java",
    "apt install mysql-client -preserve",
    "gzip -P file1234",
    "self.s.getBoundingClientRect()",
    "set -e token",
    "echo done | tee --with-token",
    "as-described-in-the-manual-of-2024",
    "sl.step1(s).run()",
    "deadbeef-1234-5678 of 0123456789abcdef",
    "token:\n  line1\n",
    "The token:\nsee section-2 below",
    "secrets:\n  first_db1:\n    from: vault",
    "<key>password</key><string>required</string>",
    "<key>PasswordHint</key><string>your-password1</string>",
    "wifi:enabled;P:on;",
    "%22password%22%3A%22%22",
    "password=self.password2, host=host1",
    "connect(password=password1, token=token2)",
    "connect(password=oauth2_token, secret=sha256_password)",
    'StaticCredentials(token="token123", password=s3secret)',
    "pwd=/home/me/work2/my_project1",
    "token = get_token()",
    "token = get_oauth2_token(client)",
    "token = tokens[0]",
    "token = lexer.next_token1",
    "api_key=settings.api_key_v2",
    'api_key = "${ACME_API_KEY}"',
    'api_key="your-api-key-here"',
    "API_KEY=<your key>",
    "API_KEY=$(cat key.txt)",
    "PASSWORD=$DB_PASSWORD",
    "password: ${{ secrets.DB_PASSWORD_2 }}",
    "PWD=/home/me/work2/project1",
    "OLDPWD=/home/me/work2",
    "Cookie: none",
    "Cookie: a small text that a server stores",
    "The password: whatever you like",
    "The token is 12 characters long",
    "password: string",
    "password: Optional[str] = None",
    'password = "xxxxxxxx"',
    'password = "********"',
    '"password": "Enter your password"',
    'type="password" name="password1"',
    "max_tokens=4096 token_count=812345a",
    "next_page_token=CAUQAA1234567890",
    '"eos_token": "<|endoftext|>"',
    "--token TOKEN --password PASSWORD --api-key KEY1",
    "use --password to set it, --token to choose another",
    "Authorization: Bearer <token>",
    "Authorization: Bearer $TOKEN",
    "Authorization: Bearer YOUR_API_KEY_1",
    'f"Bearer {token}"',
    "the bearer of this letter",
    "Bearer authentication is required here",
    "Basic authentication is required here",
    "curl -u user:$PASSWORD https://x.test",
    "curl -u $USER https://x.test",
    "sk-learn is a library, and so is sk-something-else-entirely",
    "class='sk-loading-dot-2-wrapper-element'",
    "see https://example.com:8080/a@b",
    "see https://example.com/@user/post-123:x",
    "git@github.com:acme/app.git",
    "https://user:password@host/db",
    "postgres://user:${PASSWORD}@host/db",
    "docker pull registry.test:5000/app@sha256:" + "0a" * 32,
    "npm i @scope/pkg@1.2.3",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "id 550e8400-e29b-41d4-a716-446655440000",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "look for -----BEGIN " + _PRIVATE + "----- in files",
    "-----BEGIN " + _PRIVATE + "-----\n...\n-----END " + _PRIVATE + "-----",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBa\n-----END CERTIFICATE-----",
    "secret: v1.2.3",
    "secretName: tls-cert-2024",
    "keyboard=qwerty123 monkey=banana42 turkey: roast2024",
    "cache_key = 'user:17:profile3'",
    "primary_key=id1 foreign_key: user2id",
    "the login page password reset2024",
    "machine learning needs data and a password manager1",
    "unzip -p archive1.zip file2.txt",
    "mysql -p",
    "docker run -p 8080:8080 image1",
    "ssh -p 2222x host",
    "author=me@example.test authority: root1234",
    "src/app.py:12:5:E501:line-too-long",
    "def test_password_1234(): pass",
    "bypass=abc12345 compass: north1234",
    '{"pass": "unittest", "fail": 3}',
    "test_live_update_of_the_2nd_page_works_as_expected",
    "API-VERSION-2024-05-01-PREVIEW",
    "sdk-platform-tools-35.0.2-linux",
    "pa-rt-of-the-name-of-a-branch-12-with-words",
    "b_some_name_of_a_variable_that_has_44_characters_x",
    "echo done1234 | tee log2",
    "openssl x509 -in cert.pem -noout",
    "htpasswd -c file me",
    "git commit -m 'sqlplus user/guide for v2'",
    "v1.0-beta.2-with-a-long-name-of-a-release-candidate",
    "the word senha means something in 12 languages",
)
"""Texts without a secret, many of which look as if they had one."""
