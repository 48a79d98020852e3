import { readFile, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { browse, readResponse, responseOf, sendExact } from '../../helper/exact-http.js'
import { API_SECRET } from '../../helper/gateway.js'
import { hashOf, MIB, type Progress, pour } from '../../helper/large-bodies.js'
import { startProgram } from '../../helper/program.js'
import { formHeaders } from '../../helper/route-kinds.js'
import { startHttpBackend } from '../../helper/scripted-backend.js'

const LARGE_BYTES = 200 * MIB
/**
 * Far less than a complete body. The rest is garbage: buffers that V8 has not collected yet, which it lets grow to about 90 MB
 * on Node.js 24, for a body of 200 MB as for one of 800 MB.
 */
const GROWTH_BYTES = 128 * MIB
/** Warm-up requests, so that loading and compiling code does not count as growth. */
const SMALL_REQUESTS = 200
const SMALL = '/api/zones'

interface RunningGateway {
  readonly url: string
  /** The maximum growth of memory during this. */
  growthDuring(work: () => Promise<void>): Promise<number>
}

/** The gateway in its own process, after a warm-up. */
const runGateway = async (t: Test, backendUrl: string): Promise<RunningGateway> => {
  const program = await startProgram(t, 'dist/src/gateway/main.js', {
    NODE_ENV: 'production',
    GATEWAY_PORT: '0',
    BACKEND_URL: backendUrl,
    // Longer than any test.
    BACKEND_TIMEOUT_MS: '600000',
    UPLOAD_LIMIT: '1024MiB',
    API_SECRET,
    AUDIT_LOG_FILE: join(t.testdir(), 'audit.jsonl')
  })
  const [url = ''] = /http:[^"]+/.exec(await program.waitForLine('listening at')) ?? []
  for (let count = 0; count < SMALL_REQUESTS; count++) await sendExact(url, SMALL)
  const memory = async (field: 'VmRSS' | 'VmHWM'): Promise<number> => {
    const status = await readFile(`/proc/${program.pid}/status`, 'utf8')
    return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) * 1024
  }
  return {
    url,
    growthDuring: async (work) => {
      // Resets the peak that the kernel records.
      await writeFile(`/proc/${program.pid}/clear_refs`, '5')
      const before = await memory('VmRSS')
      await work()
      return (await memory('VmHWM')) - before
    }
  }
}

/** Resolves when no bytes have moved for a while. Resolving too early does not make the test fail. */
const standstill = async (progress: Readonly<Progress>): Promise<void> => {
  for (let last = -1; last !== progress.bytes; ) {
    last = progress.bytes
    await delay(500)
  }
}

/** A declared route. */
const UPLOAD = '/api/floors/1/upload'
/** The catch-all. */
const DOWNLOAD = '/api/unknown/export'

t.test('200 MB', { skip: process.platform !== 'linux' && 'memory is measured the way of Linux' }, async (t) => {
  // A backend that reads only when the test allows it.
  let read = Promise.resolve()
  let progress = { bytes: 0 }
  let poured = Promise.resolve('')
  const backendUrl = await startHttpBackend(t, async (request, response: ServerResponse) => {
    if (request.url === SMALL) response.end('[]')
    else if (request.method === 'POST') {
      await read
      response.end(await hashOf(request))
    } else {
      response.setHeader('content-type', 'text/csv')
      progress = { bytes: 0 }
      poured = pour(response, LARGE_BYTES, progress)
    }
  })
  const gateway = await runGateway(t, backendUrl)

  t.test(`an upload of 200 MB to ${UPLOAD} arrives complete and is not buffered for a slow backend`, async (t) => {
    let goOn = (): void => undefined
    read = new Promise((resolve) => {
      goOn = resolve
    })
    const growth = await gateway.growthDuring(async () => {
      const sent = { bytes: 0 }
      const headers = { ...formHeaders(), 'content-length': String(LARGE_BYTES) }
      const request = browse(gateway.url, UPLOAD, { method: 'POST', headers })
      const pouring = pour(request, LARGE_BYTES, sent)
      await standstill(sent)

      t.ok(sent.bytes < LARGE_BYTES / 2, `${sent.bytes} bytes are on their way`)
      goOn()
      const response = await readResponse(await responseOf(request))
      t.equal(response.body.toString(), await pouring)
    })

    t.ok(growth < GROWTH_BYTES, `${growth} bytes`)
  })

  t.test(`a download of 200 MB from ${DOWNLOAD} arrives complete and is not buffered for a slow browser`, async (t) => {
    const growth = await gateway.growthDuring(async () => {
      const response = await responseOf(browse(gateway.url, DOWNLOAD).end())
      await standstill(progress)

      t.ok(progress.bytes < LARGE_BYTES / 2, `${progress.bytes} bytes are on their way`)
      t.equal(await hashOf(response), await poured)
    })

    t.ok(growth < GROWTH_BYTES, `${growth} bytes`)
  })
})
