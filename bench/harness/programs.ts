import { spawnSync } from 'node:child_process'
import { UserError } from '../../scripts/lib/command.js'
import { thisMachine } from '../../scripts/lib/services.js'

export const findProgram = (name: string): string | undefined => thisMachine(process.env).find(name)

/** The Centrifugo binary to compare with; undefined if none is configured. */
export const centrifugoProgram = (): string | undefined => {
  const file = process.env.CENTRIFUGO_BIN
  if (file === undefined || file === '') return undefined
  if (centrifugoVersion(file) === undefined) throw new UserError(`CENTRIFUGO_BIN=${file} is not a Centrifugo binary`)
  return file
}

export const centrifugoVersion = (file: string | undefined): string | undefined =>
  programVersion(file, ['version'], /Centrifugo v?(\d\S*)/i)

/** The version in what a program prints; undefined if the program is missing or does not run. */
export const programVersion = (
  file: string | undefined,
  args: readonly string[],
  version: RegExp
): string | undefined => {
  if (file === undefined) return undefined
  const { status, stdout, stderr } = spawnSync(file, args, { encoding: 'utf8' })
  return status === 0 ? version.exec(`${stdout}${stderr}`)?.[1] : undefined
}
