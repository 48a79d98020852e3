"""A backend for Gatehouse: login, one resource, negotiation and live positions. It needs Python 3.9 and no package."""

import base64, hashlib, hmac, json, math, os, threading, time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = int(os.environ.get("PORT", "4000"))
TOKEN_SECRET = os.environ["TOKEN_SECRET"]  # the gateway's API_SECRET
HMAC_SECRET = os.environ["REALTIME_HMAC_SECRET"]
API_KEY = os.environ["REALTIME_API_KEY"]
PUBLISH_URL = os.environ.get("REALTIME_PUBLISH_URL", "http://127.0.0.1:8100/api")
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


def login(body, _headers):
    expected, given = f"{USER['email']} {PASSWORD}", f"{body['email']} {body['password']}"
    if not hmac.compare_digest(expected.encode(), given.encode()):
        return 401, None
    return 200, {"token": sign({"sub": USER["userId"], "role": USER["role"]}, TOKEN_SECRET), "user": USER}


def add_cart(body, _headers):
    CARTS.append({"id": len(CARTS) + 1, "name": str(body["name"]), "transmitterId": f"T{len(CARTS) + 1}"})
    return 201, CARTS[-1]


def negotiate(_body, headers):
    """The gateway's address as the browser sees it: the gateway passes these connections on to the relay."""
    url = headers["X-Forwarded-Proto"].replace("http", "ws") + f"://{headers['X-Forwarded-Host']}/connection/websocket"
    return 200, {"url": url, "token": sign({"sub": USER["userId"]}, HMAC_SECRET)}


ROUTES = {
    "POST /api/auth/login": login,
    "POST /api/auth/logout": lambda _body, _headers: (200, {}),
    "GET /api/carts": lambda _body, _headers: (200, CARTS),
    "POST /api/carts": add_cart,
    "GET /api/negotiate": negotiate,
}


class Handler(BaseHTTPRequestHandler):
    def respond(self):
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        route = f"{self.command} {self.path.partition('?')[0]}"
        status, data = 404, None
        try:
            if not route.startswith("POST /api/auth/") and not is_valid(self.headers["Authorization"]):
                status = 401
            elif route in ROUTES:
                status, data = ROUTES[route](json.loads(text or "{}"), self.headers)
        except (ValueError, KeyError, TypeError, AttributeError):
            status = 400
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


def move_carts():
    while True:
        batch = []
        for cart in CARTS:
            angle = time.time() / 5 + cart["id"]
            place = {"x": 50 + 40 * math.cos(angle), "y": 50 + 40 * math.sin(angle)}
            entry = {"transmitterId": cart["transmitterId"], "floorId": "f1", "position": place}
            batch.append({**entry, "positionMethod": "demo", "timestamp": int(time.time() * 1000)})
        publish("floor:f1", {"type": "position-batch", "data": batch})
        time.sleep(1)


threading.Thread(target=move_carts, daemon=True).start()
print(f"backend listening at http://127.0.0.1:{PORT}", flush=True)
ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
