import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { Client } from 'pg'
import { t } from 'tap'
import { startPostgres } from './postgres.js'

// test/gateway/health/database.test.ts kills, restarts and pauses one.
t.test('teardown removes the process and the folder, even of a paused PostgreSQL', async (t) => {
  let port = 0
  let folder = ''
  await t.test('a test that ends', async (t) => {
    const postgres = await startPostgres(t)
    port = postgres.port
    const client = new Client(postgres.url)
    client.on('error', () => {})
    await client.connect()
    const { rows } = await client.query({ text: 'SHOW data_directory', rowMode: 'array' })
    folder = String(rows[0]?.[0])
    await client.end()
    t.ok(existsSync(folder))
    await postgres.restart()
    await postgres.pause()
  })

  t.notOk(existsSync(folder))
  await t.rejects(once(connect(port, '127.0.0.1'), 'connect'), { code: 'ECONNREFUSED' })
})
