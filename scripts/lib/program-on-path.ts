import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** The path of a program as the shell would find it; `path` is the value of a PATH variable. */
export const programOnPath = (name: string, path: string | undefined): string | undefined =>
  (path ?? '')
    .split(delimiter)
    // An empty entry means the current folder, which is not searched.
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, name))
    .find(isProgram)

const isProgram = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    // Missing or not executable: the next folder is searched.
    return false
  }
}
