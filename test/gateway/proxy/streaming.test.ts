import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { beginning, browse, type ExactAnswer, wholeAnswer } from '../../helper/exact-http.js'
import { API_SECRET, startGateway } from '../../helper/gateway.js'
import { startProgram } from '../../helper/program.js'
import { startHttpBackend } from '../../helper/scripted-backend.js'
import { formHeaders, onBothWays } from '../../helper/ways.js'

const MIB = 1024 * 1024
const LARGE_BYTES = 200 * MIB
const GROWTH_BYTES = 64 * MIB

interface RunningGateway {
  readonly url: string
  /** How far its memory has grown, at the most, while this was done. */
  growthDuring(work: () => Promise<void>): Promise<number>
}

/** The gateway as it is deployed: what it holds in memory is its own. */
const runGateway = async (t: Test, backendUrl: string): Promise<RunningGateway> => {
  const program = await startProgram(t, 'dist/src/gateway/main.js', {
    NODE_ENV: 'production',
    GATEWAY_PORT: '0',
    BACKEND_URL: backendUrl,
    // Longer than any test may take.
    BACKEND_TIMEOUT_MS: '600000',
    UPLOAD_LIMIT: '1024MiB',
    API_SECRET,
    AUDIT_LOG_FILE: join(t.testdir(), 'audit.jsonl')
  })
  const [url = ''] = /http:[^"]+/.exec(await program.waitForLine('listening at')) ?? []
  const memory = async (field: 'VmRSS' | 'VmHWM'): Promise<number> => {
    const status = await readFile(`/proc/${program.pid}/status`, 'utf8')
    return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) * 1024
  }
  return {
    url,
    growthDuring: async (work) => {
      // The kernel keeps the peak itself, and begins anew when it is told so.
      await writeFile(`/proc/${program.pid}/clear_refs`, '5')
      const before = await memory('VmRSS')
      await work()
      return (await memory('VmHWM')) - before
    }
  }
}

const block = randomBytes(MIB)

/** Writes so many bytes as fast as they are taken, and returns their hash. */
const pour = async (into: Writable, bytes: number, progress: { bytes: number }): Promise<string> => {
  const hash = createHash('sha256')
  for (let written = 0; written < bytes; written += block.length) {
    const part = block.subarray(0, Math.min(block.length, bytes - written))
    hash.update(part)
    const taken = into.write(part)
    progress.bytes = written + part.length
    if (!taken) await once(into, 'drain')
  }
  into.end()
  return hash.digest('hex')
}

const hashOf = async (stream: Readable): Promise<string> => {
  const hash = createHash('sha256')
  for await (const part of stream) hash.update(part as Buffer)
  return hash.digest('hex')
}

/** Resolves when nothing has moved for a while. Too early does no harm: what is checked then holds all the more. */
const standstill = async (progress: { readonly bytes: number }): Promise<void> => {
  for (let last = -1; last !== progress.bytes; ) {
    last = progress.bytes
    await delay(500)
  }
}

const UPLOADS = ['/api/floors/1/upload', '/api/personnel/1/photo', '/api/unknown/upload'] as const
const DOWNLOADS = ['/api/personnel/export/csv', '/api/unknown/export'] as const

/** By a browser that would use its connection again, if it may. */
const upload = (url: string, path: string, framing: Record<string, string>): ClientRequest =>
  browse(url, path, { method: 'POST', headers: { ...formHeaders(), connection: 'keep-alive', ...framing } })

const FRAMINGS = [
  ['with a length', { 'content-length': String(LARGE_BYTES) }],
  ['without a length', { 'transfer-encoding': 'chunked' }]
] as const

// A young process lets buffers lie, up to 64 MB of them, before it first looks what can be thrown away: a first transfer
// leaves that behind, and what grows after it grows with what passes through.
t.test('200 MB', { skip: process.platform !== 'linux' && 'memory is measured the way of Linux' }, async (t) => {
  t.test('up', async (t) => {
    // A backend that reads only when it is told to.
    let read = Promise.resolve()
    const backendUrl = await startHttpBackend(t, async (request, response) => {
      await read
      response.end(await hashOf(request))
    })
    const gateway = await runGateway(t, backendUrl)
    const transfer = async (path: string, framing: Record<string, string>): Promise<[sent: string, ExactAnswer]> => {
      const request = upload(gateway.url, path, framing)
      return Promise.all([pour(request, LARGE_BYTES, { bytes: 0 }), beginning(request).then(wholeAnswer)])
    }
    for (const [, framing] of FRAMINGS) await transfer(UPLOADS[0], framing) // unmeasured, as said above

    for (const path of UPLOADS) {
      for (const [of, framing] of FRAMINGS) {
        t.test(`arrive whole at ${path} ${of}, and pass through little memory`, async (t) => {
          read = Promise.resolve()
          const growth = await gateway.growthDuring(async () => {
            const [sent, answer] = await transfer(path, framing)

            t.equal(answer.status, 200)
            t.equal(answer.body.toString(), sent)
          })

          t.ok(growth < GROWTH_BYTES, `${growth} bytes`)
        })
      }

      t.test(`wait at ${path} for a backend that is slow to read, and not in memory`, async (t) => {
        let goOn = (): void => undefined
        read = new Promise((resolve) => {
          goOn = resolve
        })
        const growth = await gateway.growthDuring(async () => {
          const progress = { bytes: 0 }
          const request = upload(gateway.url, path, FRAMINGS[0][1])
          const pouring = pour(request, LARGE_BYTES, progress)
          await standstill(progress)

          t.ok(progress.bytes < LARGE_BYTES / 2, `${progress.bytes} bytes are on their way`)
          goOn()
          const answer = await wholeAnswer(await beginning(request))
          t.equal(answer.body.toString(), await pouring)
        })

        t.ok(growth < GROWTH_BYTES, `${growth} bytes`)
      })
    }
  })

  t.test('down', async (t) => {
    let progress = { bytes: 0 }
    let poured = Promise.resolve('')
    const backendUrl = await startHttpBackend(t, (_request, response: ServerResponse) => {
      response.setHeader('content-type', 'text/csv')
      progress = { bytes: 0 }
      poured = pour(response, LARGE_BYTES, progress)
    })
    const gateway = await runGateway(t, backendUrl)
    const transfer = async (path: string): Promise<string> => hashOf(await beginning(browse(gateway.url, path).end()))
    await transfer(DOWNLOADS[0]) // unmeasured, as said above

    for (const path of DOWNLOADS) {
      t.test(`arrive whole from ${path}, and pass through little memory`, async (t) => {
        const growth = await gateway.growthDuring(async () => {
          t.equal(await transfer(path), await poured)
        })

        t.ok(growth < GROWTH_BYTES, `${growth} bytes`)
      })

      t.test(`wait at ${path} for a browser that is slow to read, and not in memory`, async (t) => {
        const growth = await gateway.growthDuring(async () => {
          const response = await beginning(browse(gateway.url, path).end())
          await standstill(progress)

          t.ok(progress.bytes < LARGE_BYTES / 2, `${progress.bytes} bytes are on their way`)
          t.equal(await hashOf(response), await poured)
        })

        t.ok(growth < GROWTH_BYTES, `${growth} bytes`)
      })
    }
  })
})

onBothWays(t, 'an upload over the limit', async (t, way) => {
  const start = async (t: Test, listener: Parameters<typeof startHttpBackend>[1]) => {
    const backendUrl = await startHttpBackend(t, listener)
    return startGateway(t, { env: { BACKEND_URL: backendUrl, UPLOAD_LIMIT: '64KiB' } })
  }

  t.test('is refused at once where it says how long it is, before the backend hears of it', async (t) => {
    let asked = 0
    const { url } = await start(t, () => {
      asked += 1
    })
    const request = upload(url, way.upload, { 'content-length': String(64 * 1024 + 1) })
    request.flushHeaders()

    const answer = await wholeAnswer(await beginning(request))

    t.equal(answer.status, 413)
    t.same(answer.header('x-gateway-error'), ['BODY_TOO_LARGE'])
    t.same(answer.header('connection'), ['close'])
    t.equal(asked, 0)
    request.destroy()
  })

  t.test('is refused when it passes the limit where it does not say, and the backend is told', async (t) => {
    let arrived = (_request: IncomingMessage): void => undefined
    const reached = new Promise<IncomingMessage>((resolve) => {
      arrived = resolve
    })
    const { url, logs } = await start(t, (request) => {
      request.on('error', () => undefined).once('data', () => arrived(request))
    })
    const request = upload(url, way.upload, { 'transfer-encoding': 'chunked' })
    request.write(Buffer.alloc(64 * 1024))
    const atBackend = await reached
    const aborted = new Promise((resolve) => atBackend.once('close', resolve))
    request.write('x')

    const answer = await wholeAnswer(await beginning(request))

    t.equal(answer.status, 413)
    t.same(answer.header('x-gateway-error'), ['BODY_TOO_LARGE'])
    t.same(answer.header('connection'), ['close'])
    await aborted
    t.equal(atBackend.complete, false)
    t.same(
      logs.filter(({ level }) => Number(level) > 30),
      [],
      'which is nothing to complain about'
    )
    request.destroy()
  })

  for (const [of, framing] of [
    ['with a length', { 'content-length': String(64 * 1024) }],
    ['without a length', { 'transfer-encoding': 'chunked' }]
  ] as const) {
    t.test(`is none at exactly the limit, ${of}`, async (t) => {
      const { url } = await start(t, async (request, response) => response.end(await hashOf(request)))
      const request = upload(url, way.upload, framing)
      const body = block.subarray(0, 64 * 1024)
      request.write(body.subarray(0, 1))
      request.end(body.subarray(1))

      const answer = await wholeAnswer(await beginning(request))

      t.equal(answer.status, 200)
      t.equal(answer.body.toString(), createHash('sha256').update(body).digest('hex'))
    })
  }
})

onBothWays(t, 'a backend that answers in the middle of an upload', async (t, way) => {
  for (const status of [401, 413]) {
    for (const [of, framing] of [
      ['with a length', { 'content-length': String(20 * MIB) }],
      ['without a length', { 'transfer-encoding': 'chunked' }]
    ] as const) {
      t.test(`is heard: ${status}, ${of}`, async (t) => {
        const backendUrl = await startHttpBackend(t, (request, response) => {
          // After it has seen some of it, and without reading the rest.
          request.once('data', () => {
            request.pause()
            response.writeHead(status, { 'content-type': 'text/plain' }).end('enough')
          })
        })
        const { url, logs } = await startGateway(t, { env: { BACKEND_URL: backendUrl } })
        const request = upload(url, way.upload, framing)
        void pour(request, 20 * MIB, { bytes: 0 }).catch(() => undefined)

        const answer = await wholeAnswer(await beginning(request))

        t.equal(answer.status, status)
        t.equal(answer.body.toString(), 'enough')
        t.same(answer.header('x-gateway-error'), [])
        t.same(answer.header('connection'), ['close'], 'what is left of the upload is no request')
        t.same(
          logs.filter(({ level }) => Number(level) > 30),
          []
        )
        request.destroy()
      })
    }
  }

  t.test('and goes on reading gets all of it', async (t) => {
    let arrived: Promise<string> = Promise.resolve('')
    const backendUrl = await startHttpBackend(t, (request, response) => {
      response.write('I am listening, ')
      arrived = hashOf(request)
      void arrived.then(() => response.end('thank you'))
    })
    const { url } = await startGateway(t, { env: { BACKEND_URL: backendUrl } })
    const request = upload(url, way.upload, { 'content-length': String(20 * MIB) })
    const answering = beginning(request).then(wholeAnswer)

    const sent = await pour(request, 20 * MIB, { bytes: 0 })

    t.equal((await answering).body.toString(), 'I am listening, thank you')
    t.equal(await arrived, sent)
  })
})

onBothWays(t, 'a backend that fails in the middle of an upload', async (t, way) => {
  for (const [of, framing] of [
    ['with a length', { 'content-length': String(20 * MIB) }],
    ['without a length', { 'transfer-encoding': 'chunked' }]
  ] as const) {
    const uploadTo = async (t: Test, listener: Parameters<typeof startHttpBackend>[1]): Promise<ExactAnswer> => {
      const backendUrl = await startHttpBackend(t, listener)
      const { url } = await startGateway(t, { env: { BACKEND_URL: backendUrl, BACKEND_TIMEOUT_MS: '300' } })
      const request = upload(url, way.upload, framing)
      void pour(request, 20 * MIB, { bytes: 0 }).catch(() => undefined)
      const answer = await wholeAnswer(await beginning(request))
      request.destroy()
      return answer
    }

    t.test(`is 502 where it closes, ${of}`, async (t) => {
      const answer = await uploadTo(t, (request) => request.once('data', () => request.socket.destroy()))

      t.equal(answer.status, 502)
      t.same(answer.header('x-gateway-error'), ['BACKEND_UNREACHABLE'])
      t.same(answer.header('connection'), ['close'], 'nobody reads the rest: the browser must not wait for that')
    })

    t.test(`is 504 where it stops reading, ${of}`, async (t) => {
      const answer = await uploadTo(t, () => undefined)

      t.equal(answer.status, 504)
      t.same(answer.header('x-gateway-error'), ['BACKEND_TIMEOUT'])
      t.same(answer.header('connection'), ['close'])
    })

    t.test(`is not the one to blame where the browser is slow, ${of}`, async (t) => {
      const backendUrl = await startHttpBackend(t, async (request, response) => response.end(await hashOf(request)))
      const { url } = await startGateway(t, { env: { BACKEND_URL: backendUrl, BACKEND_TIMEOUT_MS: '100' } })
      const parts = Array.from({ length: 10 }, (_, index) => block.subarray(index, index + 1000))
      const request = upload(url, way.upload, 'content-length' in framing ? { 'content-length': '10000' } : framing)
      const answering = beginning(request).then(wholeAnswer)
      for (const part of parts) {
        request.write(part)
        await delay(200)
      }
      request.end()

      const answer = await answering

      t.equal(answer.status, 200)
      t.equal(answer.body.toString(), createHash('sha256').update(Buffer.concat(parts)).digest('hex'))
    })
  }
})
