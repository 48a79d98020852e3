"""A backend for Gatehouse: login, one resource, negotiation and live positions. It needs Python 3.9 and no package."""

import base64
import hashlib
import hmac
import json
import math
import os
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = int(os.environ.get("PORT", "4000"))
TOKEN_SECRET = os.environ["TOKEN_SECRET"]  # the gateway's API_SECRET
HMAC_SECRET = os.environ["REALTIME_HMAC_SECRET"]
API_KEY = os.environ["REALTIME_API_KEY"]
PUBLISH_URL = os.environ.get("REALTIME_PUBLISH_URL", "http://127.0.0.1:8100/api")
CLIENT_URL = os.environ.get("REALTIME_CLIENT_URL", "ws://localhost:8100/connection/websocket")
PASSWORD = os.environ["PASSWORD"]

USER = {"userId": "1", "email": "ada@example.com", "displayName": "Ada", "role": "user", "permissions": ["carts.write"]}
CARTS = [{"id": 1, "name": "Linen", "transmitterId": "T1"}, {"id": 2, "name": "Meals", "transmitterId": "T2"}]


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def hs256(text, secret):
    return base64url(hmac.new(secret.encode(), text.encode(), hashlib.sha256).digest())


def sign(claims, secret):
    """Returns a JWT (HS256) that is valid for an hour."""
    header = base64url(b'{"alg":"HS256","typ":"JWT"}')
    payload = base64url(json.dumps({**claims, "exp": int(time.time()) + 3600}).encode())
    return f"{header}.{payload}." + hs256(f"{header}.{payload}", secret)


def is_valid(authorization):
    """Whether the Authorization header has a token of this backend. The gateway does not check the tokens of reads."""
    text, _, given = (authorization or "").removeprefix("Bearer ").rpartition(".")
    if not hmac.compare_digest(hs256(text, TOKEN_SECRET).encode(), given.encode()):
        return False
    payload = text.partition(".")[2]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["exp"] > time.time()


def login(body):
    expected, given = f"{USER['email']} {PASSWORD}", f"{body['email']} {body['password']}"
    if not hmac.compare_digest(expected.encode(), given.encode()):
        return 401, None
    return 200, {"token": sign({"sub": USER["userId"], "role": USER["role"]}, TOKEN_SECRET), "user": USER}


def add_cart(body):
    CARTS.append({"id": len(CARTS) + 1, "name": str(body["name"]), "transmitterId": f"T{len(CARTS) + 1}"})
    return 201, CARTS[-1]


PUBLIC = {"GET /api/health": lambda _body: (200, {"status": "up"}), "POST /api/auth/login": login}
PRIVATE = {
    "GET /api/carts": lambda _body: (200, CARTS),
    "POST /api/carts": add_cart,
    "GET /api/negotiate": lambda _body: (200, {"url": CLIENT_URL, "token": sign({"sub": "1"}, HMAC_SECRET)}),
    "POST /api/auth/logout": lambda _body: (200, {}),
}


class Handler(BaseHTTPRequestHandler):
    def respond(self):
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        route = f"{self.command} {self.path.partition('?')[0]}"
        handler = PUBLIC.get(route) or PRIVATE.get(route, lambda _body: (404, None))
        if route in PRIVATE and not is_valid(self.headers.get("Authorization")):
            handler = lambda _body: (401, None)
        try:
            status, data = handler(json.loads(text or "{}"))
        except (ValueError, KeyError, TypeError, AttributeError):
            status, data = 400, None
        reply = json.dumps({"success": status < 400, "data": data}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    do_GET = do_POST = respond


def publish(channel, data):
    """Sends one publication to the relay. Never raises: a failed publication must not fail a request."""
    body = json.dumps({"channel": channel, "data": data}).encode()
    request = urllib.request.Request(f"{PUBLISH_URL}/publish", body, {"X-API-Key": API_KEY})
    try:
        with urllib.request.urlopen(request, timeout=3) as response:
            error = json.load(response).get("error")
    except (OSError, ValueError) as failure:
        error = failure
    if error:
        print("publishing failed:", error, flush=True)


def position(cart):
    angle = time.time() / 5 + cart["id"]
    place = {"x": 50 + 40 * math.cos(angle), "y": 50 + 40 * math.sin(angle)}
    return {"transmitterId": cart["transmitterId"], "floorId": "f1", "position": place, "positionMethod": "demo"}


def move_carts():
    while True:
        publish("floor:f1", {"type": "position-batch", "data": [position(cart) for cart in CARTS]})
        time.sleep(1)


threading.Thread(target=move_carts, daemon=True).start()
print(f"backend listening at http://127.0.0.1:{PORT}", flush=True)
ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
