import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { UserError } from './command.js'
import { ROOT } from './root.js'

/** A part of the build, with the files and folders that its output depends on. */
interface Step {
  readonly title: string
  readonly inputs: readonly string[]
  /** Parts of the inputs that the step does not read. */
  readonly without: readonly string[]
  /** The tool in `node_modules` and its arguments. */
  readonly command: readonly [tool: string, ...args: string[]]
}

const COMMON_INPUTS = ['package.json', 'package-lock.json', 'tsconfig.json', 'src', 'schemas']

/** Two installed versions provide `tsc`, and the package manager links one of them. */
const TSC = 'typescript-7/bin/tsc'
const VITE = 'vite/bin/vite.js'

const NEVER_READ = ['demo/test', 'demo/run', 'demo/Dockerfile']

const STEPS = {
  // Types are checked by `npm run typecheck` and `npm test`: without the check the compiler needs a third of the time.
  programs: {
    title: 'compile the programs',
    inputs: [...COMMON_INPUTS, 'tsconfig.build.json', 'demo'],
    without: [...NEVER_READ, 'demo/web'],
    command: [TSC, '-p', 'tsconfig.build.json', '--noCheck']
  },
  page: {
    title: 'build the page',
    inputs: [...COMMON_INPUTS, 'demo'],
    without: [...NEVER_READ, 'demo/backend', 'demo/oidc'],
    command: [VITE, 'build', 'demo/web', '--logLevel', 'error']
  },
  adminPage: {
    title: "build the operators' page",
    inputs: COMMON_INPUTS,
    without: NEVER_READ,
    command: [VITE, 'build', 'src/relay-admin', '--logLevel', 'error']
  }
} as const satisfies Readonly<Record<string, Step>>

const PAGES = ['page', 'adminPage'] as const

export interface BuildOptions {
  /** Runs a step, and prints its time. */
  readonly run: <Result>(title: string, work: () => Promise<Result>) => Promise<Result>
  /** Stops the tools. */
  readonly signal?: AbortSignal
  /** False leaves out the page of the demo, which takes longer than everything else. */
  readonly hasDemo?: boolean
}

/** The steps run beside each other. Each output is kept while its inputs are unchanged. */
export const startBuild = (options: BuildOptions) => {
  const programs = runStep('programs', options)
  const pages = Promise.all(
    PAGES.filter((page) => page !== 'page' || options.hasDemo !== false).map((page) => runStep(page, options))
  )
  // A failure of one part must not be unhandled while the caller waits for the other one.
  pages.catch(() => undefined)
  return { programs, pages }
}

const runStep = async (name: keyof typeof STEPS, { run, signal }: BuildOptions): Promise<void> => {
  const { title, command } = STEPS[name]
  const fingerprint = fingerprintOf(STEPS[name])
  const file = join(ROOT, 'dist/.build', name)
  if (readIfExists(file) === fingerprint) return
  await run(title, async () => {
    rmSync(file, { force: true })
    const [tool, ...args] = command
    // Without npx, whose child would survive the signal.
    const child = spawn(process.execPath, [join(ROOT, 'node_modules', tool), ...args], {
      cwd: ROOT,
      stdio: 'inherit',
      ...(signal && { signal })
    })
    const [code] = await once(child, 'close')
    if (code !== 0) throw new UserError(`The build failed: ${title}.`)
    mkdirSync(join(ROOT, 'dist/.build'), { recursive: true })
    writeFileSync(file, fingerprint)
  })
}

const fingerprintOf = ({ inputs, without, command }: Step): string => {
  const hash = createHash('sha256').update(JSON.stringify([process.version, command]))
  for (const path of inputs.flatMap((input) => filesIn(input, without)))
    hash.update(`\0${path}\0`).update(readFileSync(join(ROOT, path)))
  return hash.digest('hex')
}

const filesIn = (path: string, without: readonly string[]): string[] => {
  if (without.includes(path)) return []
  if (!statSync(join(ROOT, path)).isDirectory()) return [path]
  return readdirSync(join(ROOT, path))
    .toSorted()
    .flatMap((name) => filesIn(`${path}/${name}`, without))
}

const readIfExists = (file: string): string | null => {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return null
  }
}
