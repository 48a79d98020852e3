import {
  byteSize,
  flag,
  headerSecret,
  integer,
  list,
  oneOf,
  redisUrl,
  secret,
  secrets,
  shutdownDelay,
  text
} from '../shared/setting-kinds.js'
import { DEFAULT_ACCESS_PATHS } from './access.js'
import { DEFAULT_EXCHANGE_FIELD } from './oidc/config.js'
import { DEFAULT_LOGIN_FIELDS } from './session/login-response.js'

const KIB = 1024
const MIB = 1024 * KIB

const loginField = (name: keyof typeof DEFAULT_LOGIN_FIELDS, about: string) =>
  text('field-path', { about: `where the backend's login response has ${about}`, fallback: DEFAULT_LOGIN_FIELDS[name] })

/** The limits of lasting connections, each with what it counts or measures. */
const connectionLimits = (about: Readonly<Record<'connections' | 'perAddress' | 'idle', string>>) => ({
  connections: integer(1, 1_000_000, {
    about: `maximum number of ${about.connections} through this gateway; then 503`,
    fallback: 10_000
  }),
  perAddress: integer(1, 1_000_000, {
    about: `maximum number of ${about.perAddress} per client address; then 503`,
    fallback: 1000
  }),
  idleMs: integer(1000, 86_400_000, { about: `maximum silence of ${about.idle}`, fallback: 90_000 })
})

const webSocketLimits = connectionLimits({
  connections: 'WebSockets to the backends of GATEWAY_UPSTREAMS',
  perAddress: 'WebSockets to these backends',
  idle: 'a WebSocket to these backends; it is pinged before'
})

const relayLimits = connectionLimits({
  connections: 'connections to the relay',
  perAddress: 'connections to the relay',
  idle: 'a connection to the relay; longer than client.ping_interval of the relay'
})

/**
 * Every setting of the gateway. A new setting also needs its field in `config.ts`, a line in `.env.example`, a topic in
 * `scripts/lib/settings-docs.ts`, and `npm run docs`. docs/how-to/extend.md lists all steps.
 */
export const gatewaySettings = {
  NODE_ENV: oneOf(['development', 'production', 'test'], {
    about: 'required; production enables CSRF checks, the login limit, API authentication, HSTS and the strict CSP',
    fallback: null
  }),
  GATEWAY_HOST: text('text', {
    about: 'listen address; if a host name has several addresses, the first is used, IPv4 before IPv6',
    fallback: '127.0.0.1'
  }),
  GATEWAY_ALLOW_DEVELOPMENT: flag({
    about:
      'outside production, permit listen addresses that other machines can reach, TRUST_PROXY, GATEWAY_FORWARD_AUTH and identity_headers',
    fallback: false
  }),
  GATEWAY_PORT: integer(0, 65535, { about: 'listen port; 0 selects a free port', fallback: 3000 }),
  BACKEND_URL: text('http-url', {
    about: 'base URL of the backend; required in production; a path prefix is kept',
    fallback: null
  }),
  BACKEND_TIMEOUT_MS: integer(1, 600_000, {
    about: 'maximum time for a response of the backend; then 504',
    fallback: 30_000
  }),
  BACKEND_STREAM_IDLE_MS: integer(1, 86_400_000, {
    about: 'maximum silence of a text/event-stream response of the backend',
    fallback: 300_000
  }),
  BACKEND_CONNECTIONS: integer(1, 4096, { about: 'maximum number of connections to the backend', fallback: 128 }),
  BACKEND_ANONYMOUS_PERCENT: integer(1, 100, {
    about: 'share of connections, streaming slots and queue that requests without a verified token may use',
    fallback: 25
  }),
  BACKEND_STRIP_API_PREFIX: flag({ about: 'forward /api/x as /x', fallback: false }),
  GATEWAY_ROUTES: text('text', {
    about:
      'an OpenAPI 3.0 or 3.1 document (JSON or YAML) or an ES module with route tables, which replaces the built-in routes',
    fallback: null
  }),
  GATEWAY_UNKNOWN_PATHS: oneOf(['forward', 'refuse'], {
    about: 'refuse: an /api/ path without a declared route is 404, an undeclared method of a declared path 405',
    fallback: 'forward'
  }),
  GATEWAY_AUTH_PATHS: list('api-path', {
    about:
      'path prefixes below /api/auth that BACKEND_URL receives although no route declares them; they need no token, and their bodies are not validated'
  }),
  GATEWAY_UPSTREAMS: text('text', {
    about:
      'a file (YAML or JSON) with a list of further backends, each for some hosts and paths; others go to BACKEND_URL',
    fallback: null
  }),
  GATEWAY_WEBSOCKETS: webSocketLimits.connections,
  GATEWAY_WEBSOCKETS_PER_ADDRESS: webSocketLimits.perAddress,
  GATEWAY_WEBSOCKET_IDLE_MS: webSocketLimits.idleMs,
  GATEWAY_DEFAULT_ACCESS: oneOf(['write', 'session'], {
    about:
      'access of paths in none of the following lists, also in rows. write: a valid token for write requests, the backend decides about reads; session: a valid token on every method',
    fallback: 'write'
  }),
  GATEWAY_PUBLIC_PATHS: list(
    'api-path',
    { about: 'path prefixes that need no token, in addition to /api/auth, /api/health and /api/dev-login' },
    DEFAULT_ACCESS_PATHS.public
  ),
  GATEWAY_STRICT_PATHS: list(
    'path-prefix',
    { about: 'path prefixes that need a valid token on every method, below /api or of rows' },
    DEFAULT_ACCESS_PATHS.strict
  ),
  GATEWAY_ADMIN_PATHS: list(
    'path-prefix',
    { about: 'path prefixes that need the token of an admin on every method, below /api or of rows' },
    DEFAULT_ACCESS_PATHS.admin
  ),
  GATEWAY_FORWARD_AUTH: flag({
    about: 'serve GET /auth/verify, with which proxies in TRUST_PROXY check the requests of other applications',
    fallback: false
  }),
  API_SECRET: secret({
    about: "verifies app tokens; required in production, at least 32 characters; equal to the backend's TOKEN_SECRET",
    fallback: null
  }),
  API_SECRET_PREVIOUS: secret({
    about: 'the previous API_SECRET during a rotation; its tokens are still accepted, nothing is signed with it',
    fallback: null
  }),
  GATEWAY_INTERNAL_PORT: integer(0, 65535, {
    about:
      'listen port of POST /api/internal/revoke, for the backend and operators; enables revocation; 0 selects a free port',
    fallback: null
  }),
  GATEWAY_INTERNAL_HOST: text('text', {
    about: 'listen address of POST /api/internal/revoke; one that browsers cannot reach',
    fallback: '127.0.0.1'
  }),
  GATEWAY_INTERNAL_KEY: headerSecret({
    about:
      'the key of POST /api/internal/revoke; required with GATEWAY_INTERNAL_PORT, at least 32 characters in production',
    fallback: null
  }),
  GATEWAY_INTERNAL_KEY_PREVIOUS: headerSecret({
    about: 'the previous GATEWAY_INTERNAL_KEY during a rotation; still accepted',
    fallback: null
  }),
  GATEWAY_MAX_TOKEN_AGE_S: integer(60, 31_536_000, {
    about:
      'with GATEWAY_INTERNAL_PORT: app tokens that were issued longer ago are rejected, and revocations are kept this long; at least the lifetime of your tokens',
    fallback: 2_592_000
  }),
  RELAY_API_URL: text('http-url', {
    about: "the relay's server API, such as http://127.0.0.1:8100/api; a revocation of a user is sent there too",
    fallback: null
  }),
  REALTIME_API_KEY: headerSecret({
    about: "equal to the relay's REALTIME_API_KEY; required with RELAY_API_URL",
    fallback: null
  }),
  RELAY_UPSTREAM: text('http-url', {
    about:
      'base URL of the relay; the gateway then serves /connection/* and /emulation, so that web applications need one origin',
    fallback: null
  }),
  RELAY_UPSTREAM_CONNECTIONS: relayLimits.connections,
  RELAY_UPSTREAM_CONNECTIONS_PER_ADDRESS: relayLimits.perAddress,
  RELAY_UPSTREAM_IDLE_MS: relayLimits.idleMs,
  TRUST_PROXY: list('address-range', { about: 'proxies whose X-Forwarded-* headers are trusted' }),
  PUBLIC_URL: text('http-url', {
    about:
      'the URL that browsers use; required with OIDC_PROVIDERS, and with OIDC_ISSUER if OIDC_REDIRECT_URI is unset',
    fallback: null
  }),
  ALLOWED_ORIGINS: list('origin', { about: 'additional origins that may send write requests' }),
  CSRF_MODE: oneOf(['plain', 'signed'], {
    about:
      'plain: cookie and header must be equal; signed: in addition, the token must have been issued by this service',
    fallback: 'plain'
  }),
  LOGIN_LIMIT_MAX: integer(1, 1_000_000, { about: 'login attempts per address and window', fallback: 5 }),
  LOGIN_LIMIT_WINDOW_S: integer(1, 86_400, { about: 'time window of the login limit, in seconds', fallback: 900 }),
  GATEWAY_LIMITS: text('text', {
    about: 'a file (YAML or JSON) with limits of requests by user and address',
    fallback: null
  }),
  LOGIN_REQUEST_FIELDS: list('field-name', {
    about:
      'fields of a login request besides email, username, password and rememberMe, in the body or the query; others are rejected'
  }),
  LOGIN_TOKEN_FIELD: loginField('token', 'the app token'),
  LOGIN_USER_FIELD: loginField('user', 'the user: userId or id, email, displayName or name, role'),
  LOGIN_PERMISSIONS_FIELD: loginField('permissions', "the permissions, if they are not in the token's claims"),
  LOGIN_EXPIRES_IN_FIELD: loginField('expiresIn', 'the lifetime in seconds, if the token has no expiry'),
  REDIS_URL: redisUrl({
    about:
      'shares login counts, revocations and identity-provider sessions between gateways; one server, a Redis Cluster or Redis Sentinel; only the first of several independent servers is used',
    fallback: null
  }),
  DATABASE_URL: text('postgres-url', { about: 'PostgreSQL, for /api/health/database only', fallback: null }),
  AUDIT_LOG_FILE: text('text', { about: 'file of the audit log', fallback: 'logs/audit.jsonl' }),
  OIDC_ISSUER: text('http-url', {
    about: 'issuer URL of the identity provider; enables sign-in through it; https in production, except on loopback',
    fallback: null
  }),
  OIDC_CLIENT_ID: text('text', {
    about: 'client id at the provider; required with OIDC_ISSUER',
    fallback: null
  }),
  OIDC_CLIENT_SECRET: secret({ about: 'client secret at the provider; required with OIDC_ISSUER', fallback: null }),
  OIDC_REDIRECT_URI: text('http-url', {
    about: 'redirect URI; default: /auth/oidc/callback at PUBLIC_URL',
    fallback: null
  }),
  OIDC_SCOPES: text('text', {
    about: 'requested scopes, separated by spaces; default: openid profile email',
    fallback: null
  }),
  OIDC_GROUPS_CLAIM: text('text', {
    about: 'claim with the groups, or a path such as realm_access.roles; default: groups',
    fallback: null
  }),
  OIDC_PROVIDERS: text('text', {
    about: 'a file (YAML or JSON) with a list of further identity providers; OIDC_ISSUER is the provider default',
    fallback: null
  }),
  SESSION_SECRET: secrets({
    about:
      'encrypts identity-provider sessions; required with OIDC_ISSUER and OIDC_PROVIDERS; each at least 32 characters, previous ones last'
  }),
  EXCHANGE_SECRET: headerSecret({
    about:
      'sent to the backend as X-Exchange-Secret with the identity-provider exchange; in production required with an identity provider, at least 32 characters',
    fallback: null
  }),
  EXCHANGE_FIELD: text('field-name', {
    about: "the field that marks the identity-provider exchange in the gateway's login request to the backend",
    fallback: DEFAULT_EXCHANGE_FIELD
  }),
  COOKIE_SECURE: flag({ about: 'Secure attribute of all cookies; default: true in production', fallback: null }),
  CSP_SCRIPT_HOSTS: list('csp-host', { about: 'additional script hosts' }),
  CSP_STYLE_HOSTS: list('csp-host', { about: 'additional style hosts' }),
  CSP_IMG_HOSTS: list('csp-host', { about: 'additional image hosts, such as map tiles and blob storage' }),
  CSP_FONT_HOSTS: list('csp-host', { about: 'additional font hosts' }),
  CSP_CONNECT_HOSTS: list('csp-host', { about: 'additional hosts for connections, such as the relay' }),
  CSP_FRAME_ANCESTORS: list('csp-host', {
    about: 'hosts whose pages may show the web application in a frame; self is its own origin; default: none'
  }),
  CSP_MODE: oneOf(['standard', 'report-only', 'hardened'], {
    about:
      "hardened: also base-uri 'none' and form-action 'self', and connect-src has the hosts in CSP_CONNECT_HOSTS instead of every wss: host; report-only: browsers only report what hardened would block",
    fallback: 'standard'
  }),
  CSP_INLINE: oneOf(['allow', 'refuse'], {
    about: "refuse removes 'unsafe-inline' from script-src and style-src of the production policy",
    fallback: 'allow'
  }),
  BODY_LIMIT: byteSize(64 * MIB, { about: 'maximum size of a JSON body', fallback: MIB }),
  UPLOAD_LIMIT: byteSize(4096 * MIB, { about: 'maximum size of a streamed upload', fallback: 25 * MIB }),
  RESPONSE_BUFFER: byteSize(16 * MIB, {
    about: 'part of a response that is buffered for a slow client, so that the backend connection is free for others',
    fallback: 64 * KIB
  }),
  CLIENT_MIN_RATE: byteSize(MIB, {
    about: 'minimum bytes per second of a client that sends a body or reads a response, over CLIENT_RATE_WINDOW_MS',
    fallback: KIB
  }),
  CLIENT_RATE_WINDOW_MS: integer(1000, 600_000, {
    about: 'how long a client may be slower than CLIENT_MIN_RATE before it is disconnected',
    fallback: 30_000
  }),
  WEB_ROOT: text('web-folder', { about: 'folder of a built web application that is served under /', fallback: null }),
  LOGIN_BODY_TOKEN: oneOf(['keep', 'omit'], {
    about:
      'keep: login responses contain the token (LOGIN_TOKEN_FIELD), for web applications that read it; scripts can then read sessions',
    fallback: 'omit'
  }),
  API_DOCS: flag({ about: 'serve /api/docs; default: only outside production', fallback: null }),
  METRICS_ALLOW: list('address-range', { about: 'addresses that may read /metrics in addition to loopback' }),
  GATEWAY_MAX_IN_FLIGHT: integer(1, 1_000_000, {
    about: 'maximum number of requests that wait for the backend; then 503',
    fallback: 1024
  }),
  SHUTDOWN_DELAY_MS: shutdownDelay,
  LOG_LEVEL: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], {
    about: 'minimum level of log lines',
    fallback: 'info'
  })
}
