import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Where the shell would find a program, or undefined; `path` is the text of a PATH variable. */
export const programOnPath = (name: string, path: string | undefined): string | undefined =>
  (path ?? '')
    .split(delimiter)
    // an empty entry means the current folder: a program that happens to lie there is not meant
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, name))
    .find(isProgram)

const isProgram = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    // not there, or not ours to run: both mean "look in the next folder"
    return false
  }
}
