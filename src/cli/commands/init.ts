import { parseArgs } from 'node:util'
import { type Command, CommandError, onePositional, UsageError } from '../command.js'
import type { Language } from '../init/project-files.js'

const DEFAULT_FOLDER = '.'

export const initCommand: Command = {
  summary: 'write a small project: a page with sign-in and live data, a backend, and the settings',
  usage: 'gatehouse init [FOLDER] [--python] [--yes]',
  run: async (args, { print }) => {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: { python: { type: 'boolean' }, yes: { type: 'boolean', short: 'y', default: false } },
      allowPositionals: true
    })
    const given = positionals.length === 0 ? undefined : onePositional(positionals, 'FOLDER')
    const answers = values.yes ? { folder: given, python: values.python } : await ask(given, values.python)
    const folder = answers.folder ?? DEFAULT_FOLDER
    const language: Language = answers.python ? 'python' : 'node'
    const [{ projectFiles }, { existingFiles, writeFiles }] = await Promise.all([
      import('../init/project-files.js'),
      import('../init/write-files.js')
    ])
    const { files, install, email, password } = projectFiles(folder, language)
    const existing = existingFiles(folder, files)
    if (existing.length > 0)
      throw new CommandError([...existing.map((file) => `${file} exists already`), 'Nothing was written.'])
    writeFiles(folder, files)
    print(
      [
        ...files.map(({ path }) => `  ${path}`),
        '',
        `Next: ${folder === DEFAULT_FOLDER ? '' : `cd ${folder} && `}${install} && npm start`,
        `Then open http://localhost:3000 and sign in as ${email} with the password ${password} (in .env).`
      ].join('\n')
    )
    return 0
  }
}

/** Asks for the folder and the language, unless they were given. */
const ask = async (folder: string | undefined, python: boolean | undefined) => {
  if (folder !== undefined && python !== undefined) return { folder, python }
  if (!process.stdin.isTTY) throw new UsageError('--yes is required without a terminal')
  const { createInterface } = await import('node:readline/promises')
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  try {
    return {
      folder: folder ?? ((await terminal.question(`Folder (${DEFAULT_FOLDER}): `)).trim() || DEFAULT_FOLDER),
      python: python ?? /^p/i.test((await terminal.question('Backend in node or python (node): ')).trim())
    }
  } finally {
    terminal.close()
  }
}
