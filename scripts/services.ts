import { readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { aptLine, installWithApt, mayInstallWithApt } from './apt.js'
import { programOnPath } from './program-on-path.js'

/** A real service that tests talk to. The tests' helpers start and stop it; here it is only made certain that they can. */
export interface Service {
  readonly name: string
  /** Set it, and that running service is used. A tool that only runs for a moment has none. */
  readonly variable?: string
  /** Any one of these on the PATH will do. */
  readonly programs: readonly string[]
  /** Where Debian keeps them off the PATH: this folder has one for each version, and that has a `bin`. */
  readonly versionsIn?: string
  /** Debian's name for it. */
  readonly aptPackage: string
}

// Debian makes an empty cluster along with the package and would start it: installed from here it stays down until the
// machine starts anew, and no test ever looks at it. Only a setting left behind in /etc could keep it from being made.
export const postgresql: Service = {
  name: 'PostgreSQL',
  variable: 'DATABASE_URL',
  programs: ['postgres'],
  versionsIn: '/usr/lib/postgresql',
  aptPackage: 'postgresql'
}

export const chromium: Service = {
  name: 'Chromium',
  variable: 'CHROMIUM_PATH',
  programs: ['chromium', 'chromium-browser', 'google-chrome'],
  aptPackage: 'chromium'
}

export const services: readonly Service[] = [
  { name: 'Redis', variable: 'REDIS_URL', programs: ['redis-server'], aptPackage: 'redis-server' },
  postgresql,
  chromium,
  { name: 'Python', programs: ['python3'], aptPackage: 'python3-venv' },
  // for what is in deploy/
  { name: 'nginx', programs: ['nginx'], aptPackage: 'nginx' },
  { name: 'Caddy', programs: ['caddy'], aptPackage: 'caddy' },
  { name: 'promtool', programs: ['promtool'], aptPackage: 'prometheus' },
  { name: 'systemd-analyze', programs: ['systemd-analyze'], aptPackage: 'systemd' },
  { name: 'OpenSSL', programs: ['openssl'], aptPackage: 'openssl' }
]

/** Where Debian keeps servers such as nginx; on the PATH of root alone. */
const SYSTEM_PROGRAMS = '/usr/sbin'

/** What a run may know of its surroundings and do to them; a test hands in another one. */
export interface Machine {
  readonly env: NodeJS.ProcessEnv
  /** Looks along the PATH, then for the newest version in that folder. */
  find(program: string, versionsIn?: string): string | undefined
  mayInstall(): boolean
  install(packages: readonly string[]): void
}

export const thisMachine = (env: NodeJS.ProcessEnv): Machine => ({
  env,
  find: (program, versionsIn) =>
    programOnPath(
      program,
      [env.PATH, SYSTEM_PROGRAMS, ...(versionsIn === undefined ? [] : newestFirst(versionsIn))].join(delimiter)
    ),
  mayInstall: () => mayInstallWithApt(env),
  install: (packages) => installWithApt(packages, env)
})

/** The `bin` folders of all versions there are. */
const newestFirst = (versionsIn: string): string[] =>
  entries(versionsIn)
    .sort((one, other) => other.localeCompare(one, 'en', { numeric: true }))
    .map((version) => join(versionsIn, version, 'bin'))

const entries = (folder: string): string[] => {
  try {
    return readdirSync(folder)
  } catch {
    // no such folder: nothing of the kind is installed
    return []
  }
}

/** The program that a helper would start. */
export const programOf = ({ programs, versionsIn }: Service, machine: Pick<Machine, 'find'>): string | undefined =>
  programs.map((program) => machine.find(program, versionsIn)).find((file) => file !== undefined)

/** The message is for the person at the terminal: it names every missing service and the line that installs them. */
export class ServicesMissing extends Error {}

/** Says one line per service; throws `ServicesMissing` rather than leave one out. */
export const prepareServices = (wanted: readonly Service[], machine: Machine, say: (line: string) => void): void => {
  const missing = wanted.filter((service) => source(service, machine) === undefined)
  if (missing.length > 0) installMissing(missing, machine, say)

  for (const service of wanted) say(`${service.name}: ${source(service, machine)}`)
}

const source = (service: Service, machine: Machine): string | undefined => {
  // the address may hold a password, so only the variable is named
  if (service.variable !== undefined && machine.env[service.variable]) return `the one that ${service.variable} names`
  return programOf(service, machine)
}

const installMissing = (missing: readonly Service[], machine: Machine, say: (line: string) => void): void => {
  const packages = missing.map((service) => service.aptPackage)
  if (!machine.mayInstall()) throw new ServicesMissing(advice(missing, 'sudo '))

  say(`${missing.map((service) => service.name).join(', ')}: not here yet, so: ${aptLine(packages)}`)
  try {
    machine.install(packages)
  } catch (cause) {
    throw new ServicesMissing(`${(cause as Error).message}\n${advice(missing)}`, { cause })
  }

  const stillMissing = missing.filter((service) => source(service, machine) === undefined)
  if (stillMissing.length > 0) throw new ServicesMissing(`installed, and still not found. ${advice(stillMissing)}`)
}

const advice = (missing: readonly Service[], prefix = ''): string =>
  [
    ...missing.map(
      ({ name, variable, programs }) =>
        `${name} is missing: ${variable === undefined ? '' : `set ${variable}, or `}put ${programs.join(' or ')} on the PATH.`
    ),
    'On Debian or Ubuntu this line installs it:',
    `    ${aptLine(
      missing.map((service) => service.aptPackage),
      prefix
    )}`
  ].join('\n')
