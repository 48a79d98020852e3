import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from '../../helper/free-port.js'
import { type Certificate, makeCertificate } from './certificate.js'
import { type Change, changed, shipped } from './shipped.js'
import { runTool, startTool } from './tool.js'

/** `host:port` of every instance. */
export interface Upstreams {
  readonly gateways: readonly string[]
  readonly relays: readonly string[]
  /** Enables the block for a process that receives the other paths of the realtime host. */
  readonly ingest?: string
}

/** A reverse proxy with the shipped configuration on free ports. */
export interface RunningProxy {
  /** The folder with its configuration, in which nginx also writes nginx.pid. */
  readonly folder: string
  readonly port: number
  readonly plainPort: number
  readonly certificate: Certificate
  /** Reloads the configuration with these upstreams. Resolves when new connections use it. */
  reload(upstreams: Upstreams): Promise<void>
  /** The contents of all log files. */
  logs(): Promise<string>
}

export type StartProxy = (t: Test, upstreams: Upstreams) => Promise<RunningProxy>

/** Shorter than the shipped timeout, so that a test can wait longer than it. */
export const NGINX_TIMEOUT_S = 8

export const startNginx: StartProxy = (t, upstreams) => startNginxWith(t, upstreams, { hasDefaultSite: true })

export const startNginxWith = async (
  t: Test,
  upstreams: Upstreams,
  { hasDefaultSite }: { readonly hasDefaultSite: boolean }
): Promise<RunningProxy> => {
  const folder = t.testdir()
  const certificate = await makeCertificate(t, folder)
  const [port, plainPort] = [await freePort(), await freePort()]
  const file = (name: string): string => join(folder, name)

  const shippedSite = localSite(shipped('deploy/nginx/gatehouse.conf'), { folder, certificate, port, plainPort })
  const upstreamsConf = ({ gateways, relays, ingest }: Upstreams): string => {
    const conf = changed(shipped('deploy/nginx/gatehouse-upstreams.conf'), [
      ['    server 127.0.0.1:3000 max_fails=0;', servers(gateways, ' max_fails=0')],
      ['    server 127.0.0.1:8100 max_fails=0;', servers(relays, ' max_fails=0')]
    ])
    if (ingest === undefined) return conf
    return changed(conf.replaceAll(/^# (upstream gatehouse_ingest| {4}|\})/gm, '$1'), [['127.0.0.1:9000', ingest]])
  }
  const writeConf = async (next: Upstreams): Promise<void> => {
    const site = next.ingest === undefined ? shippedSite : changed(shippedSite, NGINX_INGEST)
    await writeFile(file('gatehouse.conf'), site)
    await writeFile(file('gatehouse-upstreams.conf'), upstreamsConf(next))
  }
  await writeConf(upstreams)
  await writeFile(file('nginx.conf'), debianConf(folder))
  if (hasDefaultSite) await writeFile(file('default-site'), debianDefaultSite(plainPort))

  const nginx = await startTool(t, 'nginx', ['-c', file('nginx.conf'), '-e', 'stderr', '-g', 'daemon off;'])
  // Before the child's own teardown, because a killed master leaves its workers running.
  t.teardown(async () => {
    nginx.signal('SIGTERM')
    await nginx.exited
  })
  await nginx.waitForLine('start worker process ')
  const workers = async (): Promise<string> => readFile(`/proc/${nginx.pid}/task/${nginx.pid}/children`, 'utf8')

  return {
    folder,
    port,
    plainPort,
    certificate,
    reload: async (next) => {
      const [last = ''] = (await workers()).trim().split(' ').reverse()
      await writeConf(next)
      nginx.signal('SIGHUP')
      // The only log line without debug logging: from here on the old worker accepts no new connection.
      await nginx.waitForLine(new RegExp(`\\] ${last}#${last}: gracefully shutting down`), 30_000)
    },
    logs: async () => {
      const names = (await readdir(folder)).filter((name) => name.endsWith('.log'))
      const files = await Promise.all(names.map((name) => readFile(file(name), 'utf8')))
      return [nginx.stdout, nginx.stderr, ...files].join('\n')
    }
  }
}

/** The shipped site of nginx with these ports, certificate and timeouts, and its logs in the folder. */
export const localSite = (
  site: string,
  { folder, certificate, port, plainPort }: Pick<RunningProxy, 'folder' | 'certificate' | 'port' | 'plainPort'>
): string =>
  changed(site, [
    ...[
      '    listen [::]:443 ssl http2 default_server;\n',
      '    listen [::]:443 ssl http2;\n',
      '    listen [::]:80;\n'
    ].map((line): Change => [line, '']),
    ['listen 443 ', `listen 127.0.0.1:${port} `],
    ['listen 80;', `listen 127.0.0.1:${plainPort};`],
    ['/etc/ssl/gatehouse/app.example.com.pem', certificate.certFile],
    ['/etc/ssl/gatehouse/app.example.com.key', certificate.keyFile],
    ['/etc/ssl/gatehouse/realtime.example.com.pem', certificate.certFile],
    ['/etc/ssl/gatehouse/realtime.example.com.key', certificate.keyFile],
    ['/var/log/nginx/gatehouse.log', `${folder}/access.log`],
    ['/var/log/nginx/gatehouse-error.log', `${folder}/gatehouse-error.log`],
    ['75s;', `${NGINX_TIMEOUT_S}s;`]
  ])

const servers = (addresses: readonly string[], parameters: string): string =>
  addresses.map((address) => `    server ${address}${parameters};`).join('\n')

/** The opt-in of gatehouse.conf for an ingest process. */
const NGINX_INGEST: readonly Change[] = [
  [
    '        return 404;\n        # proxy_pass http://gatehouse_ingest;\n        # proxy_request_buffering off;\n        # client_max',
    '        proxy_pass http://gatehouse_ingest;\n        proxy_request_buffering off;\n        client_max'
  ]
]

/** Debian's nginx.conf with all paths in the folder, and one worker, so that a reload replaces a known process. */
export const debianConf = (folder: string, sites = `${folder}/gatehouse*.conf`): string =>
  changed(readFileSync('/etc/nginx/nginx.conf', 'utf8'), [
    ['worker_processes auto;', 'worker_processes 1;'],
    ['pid /run/nginx.pid;', `pid ${folder}/nginx.pid;`],
    ['error_log /var/log/nginx/error.log;', 'error_log stderr notice;'],
    ['access_log /var/log/nginx/access.log;', `access_log ${folder}/default-access.log;`],
    ['include /etc/nginx/conf.d/*.conf;', `include ${sites};`],
    ['include /etc/nginx/sites-enabled/*;', `include ${folder}/default-sit[e];\n${temporaryPaths(folder)}`]
  ])

const temporaryPaths = (folder: string): string =>
  ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `\t${name}_temp_path ${folder}/${name};`)
    .join('\n')

/** Debian's default site, on the port that replaces 80. */
const debianDefaultSite = (plainPort: number): string =>
  changed(readFileSync('/etc/nginx/sites-available/default', 'utf8'), [
    ['listen [::]:80 default_server;', ''],
    ['listen 80 default_server;', `listen 127.0.0.1:${plainPort} default_server;`]
  ])

/** The opt-in of the Caddyfile for an ingest process. */
const caddyIngest = (address: string): readonly Change[] => [
  [
    '\t\trespond 404\n\t\t# reverse_proxy 127.0.0.1:9000\n\t\t# request_body {\n\t\t# \tmax_size 32MB\n\t\t# }\n',
    `\t\treverse_proxy ${address}\n\t\trequest_body {\n\t\t\tmax_size 32MB\n\t\t}\n`
  ]
]

export const startCaddy: StartProxy = async (t, upstreams) => {
  const folder = t.testdir()
  const certificate = await makeCertificate(t, folder)
  const [port, plainPort] = [await freePort(), await freePort()]
  const config = join(folder, 'Caddyfile')
  // In a short path: that of a socket has 107 characters at most.
  const adminFolder = mkdtempSync(join(tmpdir(), 'caddy-'))
  t.teardown(() => rmSync(adminFolder, { recursive: true, force: true }))
  const admin = `unix/${adminFolder}/admin.sock`
  const env = { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  const tls = `{\n\ttls ${certificate.certFile} ${certificate.keyFile}\n`

  const caddyfile = ({ gateways, relays, ingest }: Upstreams): string =>
    changed(shipped('deploy/caddy/Caddyfile'), [
      [
        '\tauto_https disable_redirects\n',
        `\tauto_https disable_redirects\n\tadmin ${admin}\n\tdefault_bind 127.0.0.1\n\thttp_port ${plainPort}\n\thttps_port ${port}\n`
      ],
      ['\napp.example.com {\n', `\napp.example.com ${tls}`],
      ['\nrealtime.example.com {\n', `\nrealtime.example.com ${tls}`],
      ['\tto 127.0.0.1:3000\n', `\tto ${gateways.join(' ')}\n`],
      ['\tto 127.0.0.1:8100\n', `\tto ${relays.join(' ')}\n`],
      ...(ingest === undefined ? [] : caddyIngest(ingest))
    ])
  await writeFile(config, caddyfile(upstreams))
  const caddy = await startTool(t, 'caddy', ['run', '--config', config], env)
  await caddy.waitForLine('serving initial configuration')

  return {
    folder,
    port,
    plainPort,
    certificate,
    reload: async (next) => {
      await writeFile(config, caddyfile(next))
      await runTool(t, 'caddy', ['reload', '--force', '--config', config, '--address', admin], env)
    },
    logs: async () => caddy.stdout + caddy.stderr
  }
}
