import { dirname, resolve } from 'node:path'
import { readListFile } from '../../shared/settings-file.js'
import { rowErrors, type UpstreamRules } from './row-errors.js'
import { UpstreamRow } from './upstream-row.js'

/** Reads the file of `GATEWAY_UPSTREAMS`. Each error is one line with the line of the file. */
export const readUpstreamsFile = (
  path: string,
  rules: UpstreamRules
): { readonly rows: readonly UpstreamRow[]; readonly errors: readonly string[] } => {
  const file = readListFile('GATEWAY_UPSTREAMS', path, UpstreamRow)
  // Also for rows with an unknown field, so that all errors are reported at once.
  const errors = rowErrors(file.checkable, rules).map(({ index, field, message }) => file.error(index, field, message))
  return {
    rows: file.entries.map((row) =>
      row.routes === undefined ? row : { ...row, routes: resolve(dirname(path), row.routes) }
    ),
    errors: [...file.errors, ...errors]
  }
}
