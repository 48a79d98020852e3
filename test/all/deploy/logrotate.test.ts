import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { eventually } from '../../helper/eventually.js'
import { send } from '../../helper/http.js'
import { startBackend } from '../../helper/recording-backend.js'
import { runGateway } from './programs.js'
import { shipped } from './shipped.js'
import { runTool } from './tool.js'

const FILE = 'deploy/logrotate/gatehouse'

t.test(`${FILE} rotates the audit log, and no record is lost`, async (t) => {
  const folder = t.testdir()
  const audit = join(folder, 'audit.jsonl')
  const backend = await startBackend(t)
  const { url, program } = await runGateway(t, backend.url, { AUDIT_LOG_FILE: audit })
  const deny = (path: string) => send(url, path)
  const config = join(folder, 'logrotate.conf')
  const text = shipped(FILE)
    .replace('/var/log/gatehouse/audit.jsonl', audit)
    .replace(/systemctl kill .*/, `kill -HUP ${program.pid}`)
  t.match(text, `kill -HUP ${program.pid}`)
  writeFileSync(config, text, { mode: 0o644 })

  await deny('/api/audit/before')
  // The gateway creates the file at start. logrotate does not rotate an empty one.
  await eventually(() => readFileSync(audit, 'utf8').includes('/api/audit/before'))
  await runTool(t, 'logrotate', ['--force', '--state', join(folder, 'state'), config])
  // The gateway opens the new file when it receives the signal.
  await eventually(() => readdirSync(folder).includes('audit.jsonl'))
  await deny('/api/audit/after')
  await eventually(() => readFileSync(audit, 'utf8').includes('/api/audit/after'))

  const rotated = readdirSync(folder).filter((name) => name.startsWith('audit.jsonl-'))
  t.equal(rotated.length, 1)
  t.match(readFileSync(join(folder, rotated[0] ?? 'missing'), 'utf8'), '/api/audit/before')
  t.notMatch(readFileSync(audit, 'utf8'), '/api/audit/before')
})
