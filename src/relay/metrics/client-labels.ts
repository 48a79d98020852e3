/** Known clients. Clients can send any name, so all others share one label value. */
const CLIENT_NAMES: ReadonlySet<string> = new Set([
  'gatehouse-client',
  'js',
  'go',
  'dart',
  'swift',
  'java',
  'python',
  'csharp',
  'flutter'
])
export const clientName = (name: string): string =>
  name === '' ? 'unnamed' : CLIENT_NAMES.has(name) ? name : 'unregistered'
/** All values of `clientName`. */
export const CLIENT_LABELS = ['unnamed', 'unregistered', ...CLIENT_NAMES]
export const clientVersion = (version: string): string => (version === '' ? 'unversioned' : 'unregistered')
