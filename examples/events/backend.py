"""A backend that answers the events of the relay. It needs Python 3.9 and no package."""

import hashlib, hmac, json, os, re, time
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = int(os.environ.get("PORT", "4100"))
SECRETS = [os.environ["SIGNING_SECRET"]]  # during a rotation also the previous one
MAX_BYTES = 1024 * 1024

# Users by the value of their session cookie, and the rooms of each user.
SESSIONS = {"ada-session": "ada", "bob-session": "bob"}
ROOMS = {"ada": ["room:1", "room:2"], "bob": ["room:1"]}
occupied = set()


class Rejected(Exception):
    """The client receives this error. Codes of applications are 400 to 1999."""

    def __init__(self, code, message):
        self.body = {"error": {"code": code, "message": message}}


def is_signed(header, body):
    """Whether the relay has signed the body with one of the secrets within five minutes."""
    match = re.fullmatch(r"t=(\d{1,12})((?:,v1=[0-9a-f]{64}){1,4})", header or "")
    if not match or abs(time.time() - int(match[1])) > 300:
        return False
    signatures = match[2].split(",v1=")[1:]
    expected = [hmac.new(secret.encode(), f"{match[1]}.".encode() + body, hashlib.sha256).hexdigest() for secret in SECRETS]
    return any(hmac.compare_digest(one, other) for one in signatures for other in expected)


def connect(event, headers):
    """The relay forwards the cookie, because relay.yaml lists it."""
    cookie = SimpleCookie(headers.get("Cookie", "")).get("session")
    user = SESSIONS.get(cookie.value) if cookie else None
    if user is None:
        raise Rejected(401, "sign in first")
    return {"user": user, "data": {"greeting": f"Hello {user}"}}


def subscribe(event, _headers):
    if event["channel"] not in ROOMS.get(event["user"], []):
        raise Rejected(403, "this room is not yours")
    return {}


def rpc(event, _headers):
    data = event.get("data")
    if event.get("method") != "add":
        raise Rejected(404, "there is no such method")
    if not isinstance(data, dict) or not all(type(data.get(name)) in (int, float) for name in "ab"):
        raise Rejected(400, "a and b must be numbers")
    return {"data": {"user": event["user"], "sum": data["a"] + data["b"]}}


def state(event, _headers):
    """An event may arrive twice, so handling it must be idempotent."""
    for each in event["events"]:
        (occupied.add if each["type"] == "occupied" else occupied.discard)(each["channel"])
    return {}


EVENTS = {f"/relay/{handler.__name__}": handler for handler in (connect, subscribe, rpc, state)}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps connections open

    def do_GET(self):
        self.respond(200, sorted(occupied)) if self.path == "/occupied" else self.respond(404, {})

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        if length > MAX_BYTES:
            self.close_connection = True
            return self.respond(413, {})
        body = self.rfile.read(length)
        handler = EVENTS.get(self.path)
        if handler is None:
            return self.respond(404, {})
        if not is_signed(self.headers.get("X-Gatehouse-Signature"), body):
            return self.respond(401, {})
        try:
            self.respond(200, {"result": handler(json.loads(body), self.headers)})
        except Rejected as rejected:
            self.respond(200, rejected.body)
        except (ValueError, KeyError, TypeError):
            self.respond(400, {})

    def respond(self, status, data):
        reply = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_):
        pass


print(f"backend listening at http://127.0.0.1:{PORT}", flush=True)
ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
