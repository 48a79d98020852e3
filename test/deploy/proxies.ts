import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from '../helper/free-port.js'
import { type Certificate, makeCertificate } from './certificate.js'
import { type Change, changed, shipped } from './shipped.js'
import { runTool, startTool } from './tool.js'

/** `host:port` of what stands behind; several of a kind where it is scaled out. */
export interface Behind {
  readonly gateways: readonly string[]
  readonly relays: readonly string[]
  readonly ingest: string
}

/** A reverse proxy with the configuration that is shipped, on ports of its own. */
export interface RunningProxy {
  readonly port: number
  readonly plainPort: number
  readonly certificate: Certificate
  /** Reads its configuration again, with these behind it. Resolves when whoever comes now meets the new one. */
  reload(behind: Behind): Promise<void>
}

export type StartProxy = (t: Test, behind: Behind) => Promise<RunningProxy>

/** Shorter than what is shipped, so that an idle connection outlives it within a test. */
export const NGINX_TIMEOUT_S = 8

export const startNginx: StartProxy = async (t, behind) => {
  const folder = t.testdir()
  const certificate = await makeCertificate(t, folder)
  const [port, plainPort] = [await freePort(), await freePort()]
  const file = (name: string): string => join(folder, name)

  const site = changed(shipped('deploy/nginx/gatehouse.conf'), [
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
    ['/var/log/nginx/gatehouse.log', file('access.log')],
    ['75s;', `${NGINX_TIMEOUT_S}s;`]
  ])
  const upstreams = ({ gateways, relays, ingest }: Behind): string =>
    changed(shipped('deploy/nginx/gatehouse-upstreams.conf'), [
      ['server 127.0.0.1:3000;', servers(gateways)],
      ['server 127.0.0.1:8100;', servers(relays)],
      ['server 127.0.0.1:9000;', servers([ingest])]
    ])
  await writeFile(file('gatehouse.conf'), site)
  await writeFile(file('gatehouse-upstreams.conf'), upstreams(behind))
  await writeFile(file('nginx.conf'), nginxConf(folder))

  const nginx = await startTool(t, 'nginx', ['-c', file('nginx.conf'), '-e', 'stderr'])
  // before the child's own teardown: a master that is killed leaves its workers behind
  t.teardown(async () => {
    nginx.signal('SIGTERM')
    await nginx.exited
  })
  await nginx.waitForLine('start worker process ')
  const workers = async (): Promise<string> => readFile(`/proc/${nginx.pid}/task/${nginx.pid}/children`, 'utf8')

  return {
    port,
    plainPort,
    certificate,
    reload: async (next) => {
      const [last = ''] = (await workers()).trim().split(' ').reverse()
      await writeFile(file('gatehouse-upstreams.conf'), upstreams(next))
      nginx.signal('SIGHUP')
      // with debug off this is all nginx says: the old worker takes no new connection from here on
      await nginx.waitForLine(new RegExp(`\\] ${last}#${last}: gracefully shutting down`), 30_000)
    }
  }
}

const servers = (addresses: readonly string[]): string => addresses.map((address) => `server ${address};`).join(' ')

/** What Debian's own nginx.conf says, as far as it matters, with nothing outside of the folder. */
const nginxConf = (folder: string): string => `
daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log stderr notice;
events {}
http {
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`).join('\n  ')}
  include ${folder}/gatehouse.conf;
  include ${folder}/gatehouse-upstreams.conf;
}
`

export const startCaddy: StartProxy = async (t, behind) => {
  const folder = t.testdir()
  const certificate = await makeCertificate(t, folder)
  const [port, plainPort] = [await freePort(), await freePort()]
  const config = join(folder, 'Caddyfile')
  const admin = `unix/${folder}/admin.sock`
  const env = { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  const tls = `{\n\ttls ${certificate.certFile} ${certificate.keyFile}\n`

  const caddyfile = ({ gateways, relays, ingest }: Behind): string =>
    changed(shipped('deploy/caddy/Caddyfile'), [
      [
        '{\n\tservers {',
        `{\n\tadmin ${admin}\n\tdefault_bind 127.0.0.1\n\thttp_port ${plainPort}\n\thttps_port ${port}\n\tservers {`
      ],
      ['app.example.com {\n', `app.example.com ${tls}`],
      ['realtime.example.com {\n', `realtime.example.com ${tls}`],
      ['reverse_proxy 127.0.0.1:3000', `reverse_proxy ${gateways.join(' ')}`],
      ['reverse_proxy 127.0.0.1:8100', `reverse_proxy ${relays.join(' ')}`],
      ['reverse_proxy 127.0.0.1:9000', `reverse_proxy ${ingest}`]
    ])
  await writeFile(config, caddyfile(behind))
  const caddy = await startTool(t, 'caddy', ['run', '--config', config], env)
  await caddy.waitForLine('serving initial configuration', 60_000)

  return {
    port,
    plainPort,
    certificate,
    reload: async (next) => {
      await writeFile(config, caddyfile(next))
      await runTool(t, 'caddy', ['reload', '--force', '--config', config, '--address', admin], env)
    }
  }
}
