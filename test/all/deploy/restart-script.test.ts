import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ROOT } from '../../../scripts/lib/root.js'
import { environment } from '../../helper/environment.js'
import { type Change, changed, shipped } from './shipped.js'
import { tryTool } from './tool.js'

const UPSTREAMS = shipped('deploy/nginx/gatehouse-upstreams.conf')
const SECOND_GATEWAY: Change = ['# server 127.0.0.1:3001', 'server 127.0.0.1:3001']

interface Machine {
  /** The upstreams of nginx; without them the proxy is Caddy. */
  readonly upstreams?: string
  readonly gatewayEnv?: string
  /** The config file of the relay. */
  readonly relayFile?: string
  /** The exit code of `systemctl` and `nginx`. */
  readonly exitCode?: number
}

/**
 * Runs gatehouse-restart with `systemctl`, `nginx` and `curl` that record their calls. The first one that runs also keeps the
 * upstreams of that time.
 */
const run = async (t: Test, args: readonly string[], machine: Machine) => {
  const { upstreams, gatewayEnv = '', relayFile = '{}', exitCode = 1 } = machine
  const folder = t.testdir({ bin: {}, 'gateway.env': gatewayEnv, 'relay.conf': relayFile })
  writeFileSync(join(folder, 'relay.env'), `SHUTDOWN_DELAY_MS=5000\nRELAY_CONFIG=${folder}/relay.conf\n`)
  const record = 'echo "$*" >> "$CALLS"\n[ -e "$CALLS.conf" ] || cp "$GATEHOUSE_UPSTREAMS" "$CALLS.conf"'
  for (const [name, code] of Object.entries({ systemctl: exitCode, nginx: exitCode, curl: 0 }))
    writeFileSync(join(folder, 'bin', name), `#!/bin/sh\n${record}\nexit ${code}\n`, { mode: 0o755 })
  const [conf, calls] = [join(folder, 'upstreams.conf'), join(folder, 'calls')]
  if (upstreams !== undefined) writeFileSync(conf, upstreams)
  const { exit, output } = await tryTool(t, 'sh', [join(ROOT, 'deploy/systemd/gatehouse-restart'), ...args], {
    PATH: `${join(folder, 'bin')}:${environment.path}`,
    GATEHOUSE_UPSTREAMS: conf,
    GATEHOUSE_SETTINGS: folder,
    CALLS: calls
  })
  const read = (path: string) => () => readFileSync(path, 'utf8')
  const isUntouched = !existsSync(calls)
  return { code: exit.code, output, isUntouched, calls: read(calls), conf: read(conf), during: read(`${calls}.conf`) }
}

const REJECTED: readonly (readonly [title: string, args: readonly string[], Machine, code: number, RegExp])[] = [
  ['no instance', [], { upstreams: UPSTREAMS }, 2, /^Usage/],
  ['a unit name', ['gatehouse-gateway@3000'], { upstreams: UPSTREAMS }, 2, /^Usage/],
  ['a port that is not a number', ['gateway@3000/../x'], { upstreams: UPSTREAMS }, 2, /^Usage/],
  ['an instance without a port', ['relay@'], { upstreams: UPSTREAMS }, 2, /^Usage/],
  ['an instance that nginx does not have', ['gateway@3005'], { upstreams: UPSTREAMS }, 1, /3005 is not in/],
  ['an instance that is switched off', ['gateway@3001'], { upstreams: UPSTREAMS }, 1, /3001 is not in/],
  ['the only gateway', ['gateway@3000'], { upstreams: UPSTREAMS }, 1, /only instance/],
  [
    'a gateway beside one that is down',
    ['gateway@3000'],
    { upstreams: changed(UPSTREAMS, [SECOND_GATEWAY, [':3001 max_fails=0;', ':3001 max_fails=0 down;']]) },
    1,
    /only instance/
  ],
  [
    'an instance before one that cannot be restarted',
    ['gateway@3000', 'relay@8100'],
    { upstreams: changed(UPSTREAMS, [SECOND_GATEWAY]) },
    1,
    /relay@8100 is the only instance/
  ],
  ['a gateway behind Caddy without a delay', ['gateway@3000'], {}, 1, /set SHUTDOWN_DELAY_MS=5000/],
  [
    'a gateway behind Caddy with a short delay',
    ['gateway@3000'],
    { gatewayEnv: 'SHUTDOWN_DELAY_MS=500\n' },
    1,
    /set SHUT/
  ]
]

for (const [title, args, machine, code, message] of REJECTED) {
  t.test(`gatehouse-restart rejects ${title} and restarts nothing`, async (t) => {
    const result = await run(t, args, machine)
    t.equal(result.code, code)
    t.match(result.output, message)
    t.ok(result.isUntouched)
    if (machine.upstreams !== undefined) t.equal(result.conf(), machine.upstreams)
  })
}

t.test('gatehouse-restart marks one address as down before the restart', async (t) => {
  const upstreams = changed(UPSTREAMS, [SECOND_GATEWAY])
  const { during } = await run(t, ['gateway@3000'], { upstreams })
  t.equal(
    during(),
    changed(upstreams, [['server 127.0.0.1:3000 max_fails=0;', 'server 127.0.0.1:3000 max_fails=0 down;']])
  )
})

t.test('gatehouse-restart restores the upstreams after a failure', async (t) => {
  const upstreams = changed(UPSTREAMS, [SECOND_GATEWAY])
  const { code, conf } = await run(t, ['gateway@3000'], { upstreams })
  t.not(code, 0)
  t.equal(conf(), upstreams)
})

for (const [title, relayFile, health] of [
  ['no internal listener', '{}', 'http://127.0.0.1:8100/health'],
  ['an internal address', '{ "http_server": { "internal_address": "127.0.0.2" } }', 'http://127.0.0.2:8100/health'],
  [
    'an internal address and port',
    'http_server:\n  internal_port: 9100\n  internal_address: ::1\n',
    'http://[::1]:9100/health'
  ],
  ['an internal port', "[http_server]\ninternal_port = '9100'\n", 'http://127.0.0.1:9100/health']
] as const) {
  t.test(`gatehouse-restart checks the health of a relay with ${title}`, async (t) => {
    const { code, output, calls } = await run(t, ['relay@8100'], { relayFile, exitCode: 0 })
    t.equal(code, 0, output)
    t.match(calls(), ` ${health}\n`)
  })
}

t.test('gatehouse-restart restarts the unit behind Caddy', async (t) => {
  const { code, isUntouched } = await run(t, ['gateway@3000'], { gatewayEnv: 'A=1\nSHUTDOWN_DELAY_MS=5000\n' })
  t.equal(code, 1, 'the exit code of systemctl')
  t.notOk(isUntouched)
})
