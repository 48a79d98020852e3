import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ROOT } from '../../scripts/lib/root.js'

const BACKEND = pathToFileURL(join(ROOT, 'dist/src/backend/index.js')).href

const dataUrl = (code: string): string => `data:text/javascript,${encodeURIComponent(code)}`

const HOOKS = dataUrl(
  `export const resolve = (name, context, next) => next(name === 'gatehouse-backend' ? '${BACKEND}' : name, context)`
)

/** Arguments of Node.js with which a program imports `gatehouse-backend` from the build, as if it were installed. */
export const WITH_BUILT_PACKAGES = [
  '--import',
  dataUrl(`import { register } from 'node:module'; register(${JSON.stringify(HOOKS)})`)
]
