import base64, hashlib, hmac, json, os, threading, time, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

env = os.environ
USER = {"userId": "1", "email": "ada@example.com", "displayName": "Ada", "role": "user"}
order = {"id": 42, "items": 0}


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def sign(claims, secret):
    """Returns a JSON web token that is valid for an hour."""
    text = ".".join(base64url(json.dumps(part).encode()) for part in ({"alg": "HS256"}, {**claims, "exp": int(time.time()) + 3600}))
    return f"{text}.{base64url(hmac.new(secret.encode(), text.encode(), hashlib.sha256).digest())}"


def add_items(body, _headers=None):
    order["items"] += body["count"]
    data = json.dumps({"channel": "orders:42", "data": order}).encode()
    headers = {"X-API-Key": env["REALTIME_API_KEY"]}
    request = urllib.request.Request(env["REALTIME_PUBLISH_URL"] + "/publish", data, headers)
    try:  # every open page receives it
        with urllib.request.urlopen(request, timeout=3) as response:
            error = json.load(response).get("error")  # a rejected publication has the status 200
    except (OSError, ValueError) as failure:
        error = failure
    if error:
        print("publishing failed:", error, flush=True)
    return 200, order


def login(body, _headers):
    if body["email"] != USER["email"] or body["password"] != env["PASSWORD"]:
        return 401, "Wrong email or password"
    return 200, {"token": sign({"sub": USER["userId"], "role": USER["role"]}, env["API_SECRET"]), "user": USER}


def negotiate(_body, headers):
    # The address that the browser uses: the gateway, or a development server in front of it.
    url = f"{headers['X-Forwarded-Proto'].replace('http', 'ws')}://{headers['X-Forwarded-Host']}/connection/websocket"
    return 200, {"url": url, "token": sign({"sub": USER["userId"]}, env["REALTIME_HMAC_SECRET"])}


ROUTES = {
    "POST /api/auth/login": login,
    "POST /api/auth/logout": lambda _body, _headers: (200, None),
    "GET /api/negotiate": negotiate,
    "GET /api/orders/42": lambda _body, _headers: (200, order),
    "POST /api/orders/42/items": add_items,
}


class Handler(BaseHTTPRequestHandler):
    def respond(self):
        # The gateway has checked session, CSRF token and body. If others can reach this port, verify the Bearer token too.
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        route = ROUTES.get(f"{self.command} {self.path}", lambda _body, _headers: (404, "Not found"))
        status, data = route(json.loads(text or "{}"), self.headers)
        reply = json.dumps({"success": status < 400, "data" if status < 400 else "message": data}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    do_GET = do_POST = respond


def count():
    while True:
        time.sleep(1)
        add_items({"count": 1})


threading.Thread(target=count, daemon=True).start()
ThreadingHTTPServer(("127.0.0.1", int(env["PORT"])), Handler).serve_forever()
