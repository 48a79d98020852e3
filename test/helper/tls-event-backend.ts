import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { TLSSocket } from 'node:tls'
import { promisify } from 'node:util'
import { portOf } from './address.js'
import type { Teardown } from './child.js'
import { LOOPBACK } from './free-port.js'

export interface KeyPair {
  /** PEM texts. */
  readonly key: string
  readonly cert: string
}

/** A new key with a self-signed certificate for this host. */
export const selfSigned = async (folder: string, host: string): Promise<KeyPair> => {
  const [key, cert] = [join(folder, `${host}.key`), join(folder, `${host}.pem`)]
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const subject = ['-subj', `/CN=${host}`, '-addext', `subjectAltName=DNS:${host}`, '-days', '2']
  await promisify(execFile)('openssl', ['req', '-x509', ...curve, ...subject, '-keyout', key, '-out', cert])
  return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
}

/** A backend with TLS. It answers every call with the name in the certificate of the relay; '' without one. */
export const startTlsEventBackend = async (t: Teardown, pair: KeyPair): Promise<string> => {
  const server = createServer({ ...pair, requestCert: true, rejectUnauthorized: false }, ({ socket }, response) => {
    const subject = socket instanceof TLSSocket ? socket.getPeerCertificate().subject : undefined
    response.end(JSON.stringify({ result: { data: subject?.CN ?? '' } }))
  })
  await once(server.listen(0, LOOPBACK), 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `https://${LOOPBACK}:${portOf(server)}/`
}
