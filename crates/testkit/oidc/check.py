"""Calls a Waypost server with tokens of an issuer that others wrote.

`check.py WAYPOST ISSUER`: the addresses of both. One line for each check that passed; it ends with 1
at the first that did not.
"""

import base64
import hashlib
import json
import secrets
import sys
import urllib.error
import urllib.parse
import urllib.request

API = "https://waypost.test/api"
ROBOT = ("robot", "a-secret-of-these-tests-alone-0123456789")
REDIRECT = "http://127.0.0.1:9/callback"
LIMIT_SECONDS = 180
# Only who operates the server may do this.
PRUNE = b'{"olderThanMs": 86400000}'


def sent(url, headers=None, body=None):
    """Status and JSON of a GET, or of a POST of this body."""
    request = urllib.request.Request(url, data=body, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=LIMIT_SECONDS) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, json.load(refused)


def form(url, fields, headers=None):
    return sent(url, headers, urllib.parse.urlencode(fields).encode())


def bearer(token):
    return {"authorization": f"Bearer {token}"}


def part(token, index):
    """The header or the claims of a token, unchecked."""
    text = token.split(".")[index]
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def check(what, holds, told=""):
    """One check."""
    if not holds:
        sys.exit(f"FAILED {what}: {told}")
    print(f"ok {what}")


def metadata(waypost, issuer):
    status, told = sent(f"{waypost}/.well-known/oauth-protected-resource/mcp")
    expected = (f"{waypost}/mcp", [issuer])
    found = (told.get("resource"), told.get("authorization_servers"))
    check("the metadata leads to the issuer", (status, found) == (200, expected), told)


def own_token(waypost, issuer):
    """Client credentials, for what all doors take."""
    basic = base64.b64encode(":".join(ROBOT).encode()).decode()
    fields = {"grant_type": "client_credentials", "resource": API, "scope": "read use"}
    status, told = form(f"{issuer}/token", fields, {"authorization": f"Basic {basic}"})
    check("the issuer gives a program a token", status == 200, told)
    token = told["access_token"]
    header = part(token, 0)
    kind = (header["alg"], header["typ"])
    check("it is signed with RS256", kind == ("RS256", "at+jwt"), header)
    status, who = sent(f"{waypost}/api/v1/whoami", bearer(token))
    expected = ("corp:robot", ["operator"], ["read", "use"])
    found = (who.get("subject"), who.get("roles"), who.get("scopes"))
    check("the program is known by its claims", (status, found) == (200, expected), who)
    headers = bearer(token) | {"content-type": "application/json"}
    status, told = sent(f"{waypost}/api/v1/sessions/prune", headers, PRUNE)
    found = (status, told.get("scope"))
    check("its role would permit more than its scopes", found == (403, "operate"), told)


def person_tokens(waypost, issuer):
    """The authorization code with PKCE, for `/mcp`, with an id token beside it."""
    verifier = secrets.token_urlsafe(48)
    digest = hashlib.sha256(verifier.encode()).digest()
    challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    request = {
        "response_type": "code",
        "client_id": "known",
        "redirect_uri": REDIRECT,
        "scope": "openid read use",
        "resource": f"{waypost}/mcp",
        "state": "state",
        "nonce": "nonce",
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    page = f"{issuer}/auth?{urllib.parse.urlencode(request)}"
    visit = {"page": page, "login": "ann", "permits": "read use"}
    status, told = sent(f"{issuer}/person?{urllib.parse.urlencode(visit)}")
    check("a person logs in", status == 200, told)
    back = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(told["to"]).query))
    fields = {
        "grant_type": "authorization_code",
        "client_id": "known",
        "redirect_uri": REDIRECT,
        "resource": f"{waypost}/mcp",
        "code": back.get("code", ""),
        "code_verifier": verifier,
    }
    status, told = form(f"{issuer}/token", fields)
    check("the code is worth two tokens", status == 200 and "id_token" in told, (back, told))
    return told["access_token"], told["id_token"]


def mcp_status(waypost, token):
    ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    headers = bearer(token) | {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
    }
    return sent(f"{waypost}/mcp", headers, ping)[0]


def main(waypost, issuer):
    metadata(waypost, issuer)
    own_token(waypost, issuer)
    access, proof = person_tokens(waypost, issuer)
    algorithm, audience = part(access, 0)["alg"], part(access, 1)["aud"]
    found = (algorithm, audience)
    check("the token is for `/mcp`, with ES256", found == ("ES256", f"{waypost}/mcp"), found)
    # It names no session, so that it is refused as a message, and not as a stranger's.
    status = mcp_status(waypost, access)
    check("`/mcp` takes it", status == 400, status)
    status, told = sent(f"{waypost}/api/v1/whoami", bearer(access))
    check("no other door takes it", status == 401, told)
    status, told = sent(f"{waypost}/api/v1/whoami", bearer(proof))
    check("an id token opens no door", status == 401, told)
    check("and not `/mcp` either", mcp_status(waypost, proof) == 401)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
