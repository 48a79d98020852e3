import { readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { aptCommand, canInstallWithApt, installWithApt } from './apt.js'
import { UserError } from './command.js'
import { programOnPath } from './program-on-path.js'

/** A program that tests need. The test helpers start and stop it; `prepareServices` makes sure that it is installed. */
export interface Service {
  readonly name: string
  /** The environment variable with the address of a running service, which is then used instead of the program. */
  readonly variable?: string
  /** Alternatives, in order of preference. */
  readonly programs: readonly string[]
  /** Debian's folder for programs outside of the PATH: it contains one folder per version, each with a `bin`. */
  readonly versionsIn?: string
  readonly aptPackage: string
  /** Folders of tests that need it; without them, all tests do. */
  readonly neededIn?: readonly string[]
  /** Its tests are skipped where it cannot be installed, except in continuous integration (`CI=true`). */
  readonly isOptional?: boolean
}

// The Debian package creates an empty database cluster, which the installation below does not start. Preventing its
// creation would need a file in /etc that stays on the machine.
export const postgresql: Service = {
  name: 'PostgreSQL',
  variable: 'DATABASE_URL',
  programs: ['postgres'],
  versionsIn: '/usr/lib/postgresql',
  aptPackage: 'postgresql'
}

/** The headless shell opens a page with a third of the CPU time of the complete browser. In Debian since 12. */
export const chromium: Service = {
  name: 'Chromium',
  variable: 'CHROMIUM_PATH',
  programs: ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'],
  aptPackage: 'chromium-headless-shell'
}

export const redis: Service = {
  name: 'Redis',
  variable: 'REDIS_URL',
  programs: ['redis-server', 'valkey-server'],
  aptPackage: 'redis-server'
}

/** In place of Redis with `npm test -- --valkey`. In Debian since 13, and in the backports of 12. */
export const valkey: Service = { name: 'Valkey', programs: ['valkey-server'], aptPackage: 'valkey-server' }

export const firefox: Service = {
  name: 'Firefox',
  variable: 'FIREFOX_PATH',
  programs: ['firefox-esr', 'firefox'],
  aptPackage: 'firefox-esr',
  neededIn: ['demo/test']
}

/** `java` alone is in the packages without a compiler too, which the test of the Java SDK needs. */
export const java: Service = {
  name: 'Java',
  programs: ['javac'],
  aptPackage: 'default-jdk-headless',
  neededIn: ['test/all/sdk'],
  isOptional: true
}
export const maven: Service = { ...java, name: 'Maven', programs: ['mvn'], aptPackage: 'maven' }

const DEPLOY = ['test/all/deploy', 'test/all/docs']

export const services: readonly Service[] = [
  redis,
  postgresql,
  chromium,
  firefox,
  { name: 'Python', programs: ['python3'], aptPackage: 'python3-venv', neededIn: ['test/all'] },
  java,
  maven,
  { name: 'nginx', programs: ['nginx'], aptPackage: 'nginx', neededIn: DEPLOY },
  { name: 'Caddy', programs: ['caddy'], aptPackage: 'caddy', neededIn: DEPLOY },
  { name: 'promtool', programs: ['promtool'], aptPackage: 'prometheus', neededIn: DEPLOY },
  { name: 'logrotate', programs: ['logrotate'], aptPackage: 'logrotate', neededIn: DEPLOY },
  { name: 'systemd-analyze', programs: ['systemd-analyze'], aptPackage: 'systemd', neededIn: DEPLOY },
  { name: 'OpenSSL', programs: ['openssl'], aptPackage: 'openssl', neededIn: DEPLOY }
]

/** The services that these test files need, with Valkey in place of Redis if wanted. */
export const servicesFor = (files: readonly string[], isValkey: boolean): Service[] =>
  services
    .filter(
      ({ neededIn }) =>
        neededIn === undefined || files.some((file) => neededIn.some((folder) => file.startsWith(`${folder}/`)))
    )
    .map((service) => (service === redis && isValkey ? valkey : service))

/** Debian's folder for servers such as nginx, which is on the PATH of root only. */
const SYSTEM_PROGRAMS = '/usr/sbin'

/** Time to stop the run with Ctrl-C between the announcement and the installation. */
const ANNOUNCEMENT_MS = 10_000

/** Access to the machine; tests pass a fake. */
export interface Machine {
  readonly env: NodeJS.ProcessEnv
  /** Searches the PATH, then the newest version in `versionsIn`. */
  find(program: string, versionsIn?: string): string | undefined
  canInstall(): boolean
  install(packages: readonly string[]): void
  wait(ms: number): Promise<void>
}

export const thisMachine = (env: NodeJS.ProcessEnv): Machine => ({
  env,
  find: (program, versionsIn) =>
    programOnPath(
      program,
      [env.PATH, SYSTEM_PROGRAMS, ...(versionsIn === undefined ? [] : newestFirst(versionsIn))].join(delimiter)
    ),
  canInstall: () => canInstallWithApt(env),
  install: (packages) => installWithApt(packages, env),
  wait: (ms) => setTimeout(ms)
})

/** The `bin` folders of all installed versions. */
const newestFirst = (versionsIn: string): string[] =>
  entries(versionsIn)
    .sort((one, other) => other.localeCompare(one, 'en', { numeric: true }))
    .map((version) => join(versionsIn, version, 'bin'))

const entries = (folder: string): string[] => {
  try {
    return readdirSync(folder)
  } catch {
    // No version is installed.
    return []
  }
}

/** The path of the service's program. */
export const programOf = ({ programs, versionsIn }: Service, machine: Pick<Machine, 'find'>): string | undefined =>
  programs.map((program) => machine.find(program, versionsIn)).find((file) => file !== undefined)

/** The message names every missing service and the command that installs them. */
export class ServicesMissing extends UserError {}

/** Installs missing services, or throws `ServicesMissing`. Prints one line per service. */
export const prepareServices = async (
  required: readonly Service[],
  machine: Machine,
  print: (line: string) => void
): Promise<void> => {
  const isSkippable = ({ isOptional }: Service): boolean =>
    isOptional === true && machine.env.CI !== 'true' && !machine.canInstall()
  const missing = missingServices(required, machine).filter((service) => !isSkippable(service))
  if (missing.length > 0) await installMissing(missing, machine, print)

  for (const service of required) print(`${service.name}: ${source(service, machine) ?? 'missing, tests are skipped'}`)
}

/** The services that are neither running nor installed. */
export const missingServices = (required: readonly Service[], machine: Pick<Machine, 'env' | 'find'>): Service[] =>
  required.filter((service) => source(service, machine) === undefined)

/**
 * Installs Debian packages as root. Announces them first and leaves time to stop the run, except in continuous
 * integration (`CI=true`).
 */
export const installPackages = async (
  packages: readonly string[],
  machine: Machine,
  print: (line: string) => void
): Promise<void> => {
  print(`Installing Debian packages as root: ${aptCommand(packages)}`)
  if (machine.env.CI !== 'true') {
    print(`Press Ctrl-C within ${ANNOUNCEMENT_MS / 1000} s to stop. With CI=true there is no waiting.`)
    await machine.wait(ANNOUNCEMENT_MS)
  }
  machine.install(packages)
}

const source = (service: Service, machine: Pick<Machine, 'env' | 'find'>): string | undefined => {
  // The address may contain a password, so only the variable is printed.
  if (service.variable !== undefined && machine.env[service.variable]) return `from ${service.variable}`
  return programOf(service, machine)
}

const installMissing = async (
  missing: readonly Service[],
  machine: Machine,
  print: (line: string) => void
): Promise<void> => {
  if (!machine.canInstall()) throw new ServicesMissing(advice(missing, 'sudo '))

  print(`Missing: ${missing.map((service) => service.name).join(', ')}`)
  try {
    await installPackages(
      missing.map((service) => service.aptPackage),
      machine,
      print
    )
  } catch (cause) {
    throw new ServicesMissing(`${cause instanceof Error ? cause.message : cause}\n${advice(missing)}`, { cause })
  }

  const stillMissing = missing.filter((service) => source(service, machine) === undefined)
  if (stillMissing.length > 0) throw new ServicesMissing(`Installed, but not found. ${advice(stillMissing)}`)
}

const advice = (missing: readonly Service[], prefix = ''): string =>
  [
    ...missing.map(
      ({ name, variable, programs }) =>
        `${name} is missing: ${variable === undefined ? '' : `set ${variable}, or `}put ${programs.join(' or ')} on the PATH.`
    ),
    'On Debian or Ubuntu this command installs it:',
    `    ${aptCommand(
      missing.map((service) => service.aptPackage),
      prefix
    )}`
  ].join('\n')
