import { resolve } from 'node:path'
import { type Child, startChild, type Teardown } from './child.js'
import { environment } from './environment.js'

/** Runs a built program, such as `dist/src/gateway/main.js`, with only these variables, PATH and by default `NODE_ENV=test`. */
export const startProgram = (t: Teardown, entry: string, env: Readonly<Record<string, string>>): Promise<Child> =>
  startChild(t, process.execPath, [resolve(entry)], { PATH: environment.path, NODE_ENV: 'test', ...env })
