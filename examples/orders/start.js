// Starts the backend, the relay and the gateway with new secrets. Ctrl-C stops them.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'

const secret = () => randomBytes(32).toString('hex')
const env = {
  NODE_ENV: 'production',
  API_SECRET: secret(),
  REALTIME_HMAC_SECRET: secret(),
  REALTIME_API_KEY: secret(),
  DEV_ACCOUNT: 'ada@example.com',
  PASSWORD: 'correct-horse',
  RELAY_CONFIG: 'relay.yaml',
  ...process.env
}
const command = ['node_modules/.bin/gatehouse', 'dev', '--', process.execPath, 'backend.js']
spawn(process.execPath, command, { env, stdio: 'inherit' }).on('exit', (code) => {
  process.exitCode = code ?? 1
})
