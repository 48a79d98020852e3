// Starts the backend, the relay and the gateway with new secrets. Ctrl-C stops them.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'

const secret = () => randomBytes(32).toString('hex')
const tokenSecret = secret()
const env = {
  NODE_ENV: 'production',
  COOKIE_SECURE: 'false', // this machine has no TLS
  API_SECRET: tokenSecret,
  TOKEN_SECRET: tokenSecret,
  REALTIME_HMAC_SECRET: secret(),
  REALTIME_API_KEY: secret(),
  PASSWORD: 'correct-horse',
  BACKEND_URL: 'http://127.0.0.1:4000',
  RELAY_UPSTREAM: 'http://127.0.0.1:8100',
  RELAY_CONFIG: 'relay.yaml',
  ...process.env
}
const command = ['node_modules/.bin/gatehouse', 'dev', '--', process.execPath, 'backend.js']
spawn(process.execPath, command, { env, stdio: 'inherit' }).on('exit', (code) => {
  process.exitCode = code ?? 1
})
