import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { accepting, freePort } from './port.js'
import { LOAD_CORE, startProgram } from './process.js'
import { findProgram } from './programs.js'

export interface TlsProxy {
  readonly pid: number
  readonly port: number
  stop(): Promise<void>
}

/** Whether nginx and the program that makes its certificate are installed. */
export const hasTlsProxy = (): boolean => findProgram('nginx') !== undefined && findProgram('openssl') !== undefined

/** An nginx on the core of the load generator that terminates TLS in front of a WebSocket server. */
export const startTlsProxy = async (upstreamPort: number): Promise<TlsProxy> => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-nginx-'))
  const file = (name: string): string => join(folder, name)
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-noenc', '-keyout', file('key.pem')]
  const certificate = ['req', '-x509', ...key, '-out', file('cert.pem'), '-days', '2', '-subj', '/CN=localhost']
  const { status, stderr } = spawnSync('openssl', certificate, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`openssl: ${stderr}`)
  const port = await freePort()
  writeFileSync(file('nginx.conf'), configuration(folder, port, upstreamPort))
  const command = [findProgram('nginx') ?? 'nginx', '-c', file('nginx.conf'), '-e', 'stderr', '-g', 'daemon off;']
  const nginx = startProgram(LOAD_CORE, command)
  await accepting(port)
  return {
    pid: nginx.pid,
    port,
    async stop() {
      await nginx.stop()
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

const configuration = (folder: string, port: number, upstreamPort: number): string => `
worker_processes 2;
pid ${folder}/nginx.pid;
error_log stderr error;
events { worker_connections 25000; }
http {
  access_log off;
${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `  ${name}_temp_path ${folder}/${name};`).join('\n')}
  server {
    listen 127.0.0.1:${port} ssl backlog=4096;
    ssl_certificate ${folder}/cert.pem;
    ssl_certificate_key ${folder}/key.pem;
    location / {
      proxy_pass http://127.0.0.1:${upstreamPort};
      proxy_http_version 1.1;
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto https;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection upgrade;
      proxy_read_timeout 300s;
    }
  }
}
`
