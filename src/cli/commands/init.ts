import { parseArgs } from 'node:util'
import { type Command, CommandError, onePositional, UsageError } from '../command.js'
import type { ProjectKind } from '../init/project-files.js'

const DEFAULT_FOLDER = '.'

export const initCommand: Command = {
  summary: 'write a small project: a page with sign-in and live data, a backend, and the settings',
  usage: 'gatehouse init [FOLDER] [--python | --react] [--yes]',
  run: async (args, { print }) => {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: {
        python: { type: 'boolean', default: false },
        react: { type: 'boolean', default: false },
        yes: { type: 'boolean', short: 'y', default: false }
      },
      allowPositionals: true
    })
    const given = positionals.length === 0 ? undefined : onePositional(positionals, 'FOLDER')
    if (values.python && values.react) throw new UsageError('--react has a backend in Node.js: leave out --python')
    const option: ProjectKind | undefined = values.react ? 'react' : values.python ? 'python' : undefined
    const answers = values.yes ? { folder: given, kind: option } : await ask(given, option)
    const folder = answers.folder ?? DEFAULT_FOLDER
    const kind = answers.kind ?? 'node'
    const [{ projectFiles }, { existingFiles, writeFiles }] = await Promise.all([
      import('../init/project-files.js'),
      import('../init/write-files.js')
    ])
    const { files, install, email, password } = projectFiles(folder, kind)
    const existing = existingFiles(folder, files)
    if (existing.length > 0)
      throw new CommandError([...existing.map((file) => `${file} exists already`), 'Nothing was written.'])
    writeFiles(folder, files)
    print(
      [
        ...files.map(({ path }) => `  ${path}`),
        '',
        `Next: ${folder === DEFAULT_FOLDER ? '' : `cd ${folder} && `}${install} && npm start`,
        `Then open the page whose address it prints, and sign in as ${email} with the password ${password} (in .env).`
      ].join('\n')
    )
    return 0
  }
}

/** Asks for the folder and the kind of project, unless they were given. */
const ask = async (folder: string | undefined, kind: ProjectKind | undefined) => {
  if (folder !== undefined && kind !== undefined) return { folder, kind }
  if (!process.stdin.isTTY) throw new UsageError('--yes is required without a terminal')
  const { createInterface } = await import('node:readline/promises')
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  try {
    return {
      folder: folder ?? ((await terminal.question(`Folder (${DEFAULT_FOLDER}): `)).trim() || DEFAULT_FOLDER),
      kind:
        kind ?? kindOf(await terminal.question('Backend in node or python, or a web application with react (node): '))
    }
  } finally {
    terminal.close()
  }
}

const kindOf = (answer: string): ProjectKind => {
  const first = answer.trim().charAt(0).toLowerCase()
  return first === 'p' ? 'python' : first === 'r' ? 'react' : 'node'
}
