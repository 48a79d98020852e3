import { existsSync, readFileSync } from 'node:fs'
import { cpus, release, totalmem, type } from 'node:os'
import packageFile from '../../package.json' with { type: 'json' }
import { packageVersion } from './peer-packages.js'
import { centrifugoProgram, centrifugoVersion, findProgram, programVersion } from './programs.js'

/** The npm packages that the gateway and the relay are compared with. */
const PEER_PACKAGES = ['ws', 'socket.io', '@fastify/http-proxy', 'undici', 'express', 'http-proxy-middleware'] as const

const GOVERNOR = '/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor'
const OS_RELEASE = '/etc/os-release'

const textOf = (file: string): string => (existsSync(file) ? readFileSync(file, 'utf8').trim() : '')

const systemName = (): string => /^PRETTY_NAME="?([^"\n]+)/m.exec(textOf(OS_RELEASE))?.[1] ?? type()

/** Major and minor version: the rest names the build of one distributor or cloud. */
const kernelVersion = (): string => /^\d+\.\d+/.exec(release())?.[0] ?? release()

/** The version, and the commit of a clone. */
export const gatehouseVersion = (): string => {
  const commit = programVersion('git', ['describe', '--always', '--dirty'], /^(\S+)/)
  return commit === undefined ? packageFile.version : `${packageFile.version}, commit ${commit}`
}

/** Name and version of everything that is compared; the version is undefined if it is not installed. */
const peerVersions = (): readonly (readonly [name: string, version: string | undefined])[] => [
  ...PEER_PACKAGES.map((name) => [name, packageVersion(name)] as const),
  ['Redis', programVersion(findProgram('redis-server'), ['--version'], /v=(\S+)/)],
  ['nginx', programVersion(findProgram('nginx'), ['-v'], /nginx\/(\S+)/)],
  ['Centrifugo (CENTRIFUGO_BIN)', centrifugoVersion(centrifugoProgram())]
]

/** The machine, the versions, and the names of missing peers. */
export const machineReport = (): string => {
  const peers = peerVersions()
  const installed = peers.flatMap(([name, version]) => (version === undefined ? [] : [`${name} ${version}`]))
  const missing = peers.flatMap(([name, version]) => (version === undefined ? [name] : []))
  const governor = textOf(GOVERNOR)
  const rows = [
    ['CPU', `${cpus()[0]?.model.trim() ?? 'unknown'}, ${process.arch}`],
    // Not `availableParallelism`, because the benchmark itself is bound to one core.
    ['cores', String(cpus().length)],
    ['governor', governor === '' ? 'not readable' : governor],
    ['memory', `${(totalmem() / 1024 ** 3).toFixed(1)} GiB`],
    ['system', `${systemName()}, ${type()} ${kernelVersion()}`],
    ['Node.js', process.version],
    ['Gatehouse', gatehouseVersion()],
    ['peers', installed.join(', ')],
    ['not installed', missing.length === 0 ? 'none' : missing.join(', ')]
  ]
  return rows.map(([name, value]) => `- ${name}: ${value}`).join('\n')
}
