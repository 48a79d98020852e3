import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { startGateway, type TestGateway, type TestGatewayOptions } from '../../helper/gateway.js'
import { type RecordingBackend, startBackend } from '../../helper/recording-backend.js'

/** A folder with these files, for the time of the test. */
export const folderOf = (t: Pick<Test, 'teardown'>, files: Readonly<Record<string, string>>): string => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-upstreams-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

export type Row = Readonly<Record<string, unknown>> & { readonly name: string }

export interface SeveralBackends extends TestGateway {
  /** The backends of the rows, by name. */
  readonly backends: Readonly<Record<string, RecordingBackend>>
  /** The names of the backends that have received requests since the last call, and the targets of these requests. */
  received(): Readonly<Record<string, string[]>>
}

/** A gateway with a backend for each row that has no `url`, and one for `BACKEND_URL`. */
export const startUpstreams = async (
  t: Test,
  rows: readonly Row[],
  { files = {}, ...options }: TestGatewayOptions & { readonly files?: Readonly<Record<string, string>> } = {}
): Promise<SeveralBackends> => {
  const backends: Record<string, RecordingBackend> = {}
  for (const { name, url } of rows) if (url === undefined) backends[name] = await startBackend(t)
  const file = JSON.stringify(rows.map((row) => ({ url: backends[row.name]?.url, ...row })))
  const folder = folderOf(t, { 'upstreams.json': file, ...files })
  const gateway = await startGateway(t, {
    ...options,
    env: { GATEWAY_UPSTREAMS: join(folder, 'upstreams.json'), ...options.env }
  })
  const all: Readonly<Record<string, RecordingBackend>> = { ...backends, default: gateway.backend }
  return {
    ...gateway,
    backends,
    received: () =>
      Object.fromEntries(
        Object.entries(all).flatMap(([name, { requests }]) => {
          const urls = requests.splice(0).map(({ url }) => url)
          return urls.length === 0 ? [] : [[name, urls]]
        })
      )
  }
}
