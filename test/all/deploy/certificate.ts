import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Teardown } from '../../helper/child.js'
import { runTool } from './tool.js'

export const APP = 'app.example.com'
export const REALTIME = 'realtime.example.com'

export interface Certificate {
  readonly certFile: string
  readonly keyFile: string
  readonly pem: string
}

/** A self-signed certificate for both hosts. */
export const makeCertificate = async (t: Teardown, folder: string): Promise<Certificate> => {
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-noenc', '-keyout', keyFile]
  const names = ['-subj', '/CN=test', '-addext', `subjectAltName=DNS:${APP},DNS:${REALTIME}`]
  await runTool(t, 'openssl', ['req', '-x509', ...key, '-out', certFile, '-days', '2', ...names])
  return { certFile, keyFile, pem: readFileSync(certFile, 'utf8') }
}
