import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { Client } from 'pg'
import { type Test, t } from 'tap'
import { databaseUrl, startPostgres } from './postgres.js'

const client = async (t: Pick<Test, 'teardown'>, url: string): Promise<Client> => {
  const client = new Client(url)
  // These tests break connections.
  client.on('error', () => {})
  t.teardown(() => client.end())
  await client.connect()
  return client
}

const value = async (client: Client, query: string): Promise<unknown> => {
  const { rows } = await client.query({ text: query, rowMode: 'array' })
  return rows[0]?.[0]
}

const TABLES = "SELECT count(*)::int FROM pg_tables WHERE schemaname = 'public'"

t.test('startPostgres', async (t) => {
  t.test('startPostgres starts an empty PostgreSQL', async (t) => {
    const { url } = await startPostgres(t)

    t.equal(await value(await client(t, url), TABLES), 0)
  })

  t.test('startPostgres starts a separate PostgreSQL for every caller', async (t) => {
    const [one, two] = await Promise.all([startPostgres(t), startPostgres(t)])

    await (await client(t, one.url)).query('CREATE TABLE mine ()')

    t.equal(await value(await client(t, one.url), TABLES), 1)
    t.equal(await value(await client(t, two.url), TABLES), 0)
  })

  t.test('startPostgres accepts connections without a password by default', async (t) => {
    const { url } = await startPostgres(t)

    t.equal(await value(await client(t, url.replace(/:[^:@]+@/, '@')), 'SELECT 1'), 1)
  })

  t.test('startPostgres with scram-sha-256 requires the password', async (t) => {
    const { url } = await startPostgres(t, { auth: 'scram-sha-256' })

    t.equal(await value(await client(t, url), 'SELECT 1'), 1)
    await t.rejects(client(t, url.replace(/:[^:@]+@/, ':wrong@')), { code: '28P01' })
  })

  t.test('a killed PostgreSQL rejects connections', async (t) => {
    const { url, port, kill } = await startPostgres(t)
    const connected = await client(t, url)
    const broken = new Promise((resolve) => connected.once('end', () => resolve('broken')))

    await kill()

    await t.rejects(once(connect(port, '127.0.0.1'), 'connect'), { code: 'ECONNREFUSED' })
    t.equal(await broken, 'broken', 'existing connections break')
  })

  t.test('restart starts PostgreSQL on the same port with its data', async (t) => {
    const { url, kill, restart } = await startPostgres(t)
    await (await client(t, url)).query('CREATE TABLE mine ()')

    await kill()
    await restart()

    t.equal(await value(await client(t, url), TABLES), 1)
  })

  t.test('a paused PostgreSQL does not respond to existing and new clients', async (t) => {
    const postgres = await startPostgres(t)
    const connected = await client(t, postgres.url)

    await postgres.pause()
    const results = [value(connected, 'SELECT 1'), client(t, postgres.url).then((late) => value(late, 'SELECT 1'))]
    const first = await Promise.race([...results, new Promise((resolve) => setTimeout(resolve, 100, 'waiting'))])
    postgres.resume()

    t.equal(first, 'waiting')
    t.same(await Promise.all(results), [1, 1])
  })

  t.test('teardown removes the process and the folder, even of a paused PostgreSQL', async (t) => {
    let port = 0
    let folder = ''
    await t.test('a test that ends', async (t) => {
      const postgres = await startPostgres(t)
      port = postgres.port
      folder = String(await value(await client(t, postgres.url), 'SHOW data_directory'))
      t.ok(existsSync(folder))
      await postgres.restart()
      await postgres.pause()
    })

    t.notOk(existsSync(folder))
    await t.rejects(once(connect(port, '127.0.0.1'), 'connect'), { code: 'ECONNREFUSED' })
  })
})

t.test('databaseUrl returns the address of a running PostgreSQL', async (t) => {
  t.equal(await value(await client(t, await databaseUrl(t)), 'SELECT 1'), 1)
})
