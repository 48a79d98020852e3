import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { ROOT } from '../../../scripts/lib/root.js'
import { idsInFile } from './audit-fixture.js'

t.test('a process with an audit log on its own stderr', async (t) => {
  const source = join(ROOT, 'dist/src/gateway/audit/audit-log.js')
  // It records when its stdin ends and does not call exit: the log must not keep the process alive.
  const script = `
    import { AuditLog } from '${source}'
    const logger = { info () {}, warn () {}, error () {} }
    const log = await AuditLog.open({ file: process.argv[1], logger })
    for await (const _ of process.stdin);
    for (const requestId of ['0', '1']) {
      log.record({ event: 'forbidden_access', ip: '203.0.113.9', user: null, requestId })
      await log.flush()
    }
    process.stdout.write(JSON.stringify({ fallback: log.fallback, dropped: log.dropped }))
  `
  const start = (file: string, stderr: 'pipe' | number) =>
    spawn(process.execPath, ['--input-type=module', '--eval', script, file], {
      stdio: ['pipe', 'pipe', stderr]
    })
  const finish = async (child: ChildProcess) => {
    child.stdin?.end()
    const [[status], stdout] = await Promise.all([once(child, 'close'), child.stdout ? text(child.stdout) : ''])
    return { status, ...JSON.parse(stdout) }
  }

  t.test('nothing is written to stderr while the audit file can be written', async (t) => {
    const file = join(t.testdir(), 'audit.jsonl')
    const child = start(file, 'pipe')
    const [result, stderr] = await Promise.all([finish(child), child.stderr && text(child.stderr)])
    t.same(result, { status: 0, fallback: false, dropped: 0 })
    t.equal(stderr, '')
    t.same(idsInFile(file), [0, 1])
  })

  t.test('records go to stderr while the audit file cannot be written', async (t) => {
    const child = start('/dev/full', 'pipe')
    const [result, stderr] = await Promise.all([finish(child), child.stderr && text(child.stderr)])
    t.same(result, { status: 0, fallback: true, dropped: 0 })
    t.match(stderr, /^\[AUDIT\] \{.*"requestId":"0".*\n\[AUDIT\] \{.*"requestId":"1".*\n$/)
  })

  t.test('the process survives a stderr on a full disk and counts the dropped records', async (t) => {
    const result = await finish(start('/dev/full', openSync('/dev/full', 'a')))
    t.same(result, { status: 0, fallback: true, dropped: 2 })
  })

  t.test('the process survives a closed stderr and counts the dropped records', async (t) => {
    const child = start('/dev/full', 'pipe')
    if (child.stderr) await once(child.stderr.destroy(), 'close')
    t.same(await finish(child), { status: 0, fallback: true, dropped: 2 })
  })
})
