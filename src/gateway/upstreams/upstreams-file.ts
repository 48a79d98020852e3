import { dirname, resolve } from 'node:path'
import { type FileValue, readListFile } from '../../shared/settings-file.js'
import { rowErrors, type UpstreamRules } from './row-errors.js'
import { UpstreamRow } from './upstream-row.js'

export interface UpstreamsFile {
  /** Empty if there is an error. */
  readonly rows: readonly UpstreamRow[]
  /** The addresses of all rows. */
  readonly urls: readonly FileValue[]
  readonly errors: readonly string[]
}

/** Reads the file of `GATEWAY_UPSTREAMS`. Each error is one line with the line of the file. */
export const readUpstreamsFile = (path: string, rules: UpstreamRules): UpstreamsFile => {
  const file = readListFile('GATEWAY_UPSTREAMS', path, UpstreamRow)
  const errors = rowErrors(file.checkable, rules).map(({ index, field, message }) => file.error(index, field, message))
  return {
    rows: file.entries.map((row) =>
      row.routes === undefined ? row : { ...row, routes: resolve(dirname(path), row.routes) }
    ),
    urls: file.checkable.flatMap(({ url }, index) =>
      url === undefined ? [] : [{ value: url, error: (message: string) => file.error(index, 'url', message) }]
    ),
    errors: [...file.errors, ...errors]
  }
}
