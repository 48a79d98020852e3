import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type LocalAccount, localProvider } from './local-provider.js'

// The demo's identity provider as a separate process. Environment variables:
//   DEMO_OIDC_PORT        the port on 127.0.0.1 (default 9100)
//   DEMO_OIDC_CLIENT_ID, DEMO_OIDC_CLIENT_SECRET, DEMO_OIDC_APP_URL   the registration of the gateway

const {
  DEMO_OIDC_PORT = '9100',
  DEMO_OIDC_CLIENT_ID = 'gatehouse',
  DEMO_OIDC_CLIENT_SECRET = 'a-secret-for-the-demo-only',
  DEMO_OIDC_APP_URL = 'http://127.0.0.1:3000'
  // biome-ignore lint/style/noProcessEnv: this file is the process
} = process.env

const account = (id: string, name: string, groups: readonly string[]): LocalAccount => ({
  id,
  claims: { name, email: `${id}@example.com`, email_verified: true, groups }
})

/** The demo backend has accounts for the first three. The fourth shows a user without an account. */
const demoAccounts = [
  account('admin', 'Alex Admin', ['gatehouse-admins']),
  account('operator', 'Olive Operator', ['gatehouse-operators']),
  account('viewer', 'Vic Viewer', ['gatehouse-viewers']),
  account('nobody', 'Nora Nobody', [])
]

const server = createServer()
await once(server.listen(Number(DEMO_OIDC_PORT), '127.0.0.1'), 'listening')
// A TCP server that listens has an address with a port.
const { port } = server.address() as AddressInfo
const issuer = `http://127.0.0.1:${port}`

server.on(
  'request',
  localProvider({
    issuer,
    accounts: demoAccounts,
    clients: [
      {
        client_id: DEMO_OIDC_CLIENT_ID,
        client_secret: DEMO_OIDC_CLIENT_SECRET,
        grant_types: ['authorization_code', 'refresh_token'],
        redirect_uris: [new URL('/auth/oidc/callback', DEMO_OIDC_APP_URL).href],
        post_logout_redirect_uris: [new URL('/', DEMO_OIDC_APP_URL).href]
      }
    ]
  })
)
process.stdout.write(`identity provider at ${issuer}\n`)

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    server.closeAllConnections()
    server.close(() => process.exit(0))
  })
}
