import { SettingsError } from './env.js'

/** Names of the settings of the listen address. */
export interface ListenSettings {
  readonly host: string
  readonly port: string
}

/** Explains an error of `listen` in terms of the settings. Other errors are returned unchanged. */
export const listenError = (error: unknown, { host, port }: ListenSettings): unknown => {
  // `listen` and `lookup` fail with errors of the system.
  const { code = '', message } = error as NodeJS.ErrnoException
  const explanations: Readonly<Record<string, string>> = {
    ENOTFOUND: `${host} must be an address of this machine, or a name of one`,
    EAI_AGAIN: `${host} must be an address of this machine, or a name of one`,
    EADDRNOTAVAIL: `${host} must be an address of this machine, or a name of one`,
    EADDRINUSE: `${port} must be free`,
    EACCES: `${port} must be one that this user may listen on`
  }
  const explanation = explanations[code]
  return explanation === undefined ? error : new SettingsError([`${explanation} (${message})`])
}
