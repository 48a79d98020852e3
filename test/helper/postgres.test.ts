import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { Client } from 'pg'
import { type Test, t } from 'tap'
import { databaseUrl, startPostgres } from './postgres.js'

const client = async (t: Pick<Test, 'teardown'>, url: string): Promise<Client> => {
  const client = new Client(url)
  // a connection that breaks is what these tests are about
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
  t.test('gives an empty PostgreSQL that answers', async (t) => {
    const { url } = await startPostgres(t)

    t.equal(await value(await client(t, url), TABLES), 0)
  })

  t.test('gives every caller a PostgreSQL of its own', async (t) => {
    const [one, two] = await Promise.all([startPostgres(t), startPostgres(t)])

    await (await client(t, one.url)).query('CREATE TABLE mine ()')

    t.equal(await value(await client(t, one.url), TABLES), 1)
    t.equal(await value(await client(t, two.url), TABLES), 0)
  })

  t.test('believes every name unless told otherwise', async (t) => {
    const { url } = await startPostgres(t)

    t.equal(await value(await client(t, url.replace(/:[^:@]+@/, '@')), 'SELECT 1'), 1)
  })

  t.test('wants the password with scram-sha-256', async (t) => {
    const { url } = await startPostgres(t, { auth: 'scram-sha-256' })

    t.equal(await value(await client(t, url), 'SELECT 1'), 1)
    await t.rejects(client(t, url.replace(/:[^:@]+@/, ':wrong@')), { code: '28P01' })
  })

  t.test('refuses connections once it is killed', async (t) => {
    const { url, port, kill } = await startPostgres(t)
    const connected = await client(t, url)
    const broken = new Promise((resolve) => connected.once('end', () => resolve('broken')))

    await kill()

    await t.rejects(once(connect(port, '127.0.0.1'), 'connect'), { code: 'ECONNREFUSED' })
    t.equal(await broken, 'broken', 'as are those it had')
  })

  t.test('comes back on the same port with its data', async (t) => {
    const { url, kill, restart } = await startPostgres(t)
    await (await client(t, url)).query('CREATE TABLE mine ()')

    await kill()
    await restart()

    t.equal(await value(await client(t, url), TABLES), 1)
  })

  t.test('keeps a client waiting while it is paused, and a new one too', async (t) => {
    const postgres = await startPostgres(t)
    const connected = await client(t, postgres.url)

    await postgres.pause()
    const answers = [value(connected, 'SELECT 1'), client(t, postgres.url).then((late) => value(late, 'SELECT 1'))]
    const first = await Promise.race([...answers, new Promise((resolve) => setTimeout(resolve, 100, 'waiting'))])
    postgres.resume()

    t.equal(first, 'waiting')
    t.same(await Promise.all(answers), [1, 1])
  })

  t.test('leaves no process and no folder behind, even paused', async (t) => {
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

t.test('databaseUrl names a PostgreSQL that answers', async (t) => {
  t.equal(await value(await client(t, await databaseUrl(t)), 'SELECT 1'), 1)
})
