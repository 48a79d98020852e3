import { fileURLToPath } from 'node:url'

/** Arguments of Node.js that run a TypeScript file of the project: its compiled form if the tests are compiled. */
export const scriptArguments = (file: string): string[] => {
  const isCompiled = import.meta.url.endsWith('.js')
  const path = fileURLToPath(new URL(`../../${isCompiled ? file.replace(/\.ts$/, '.js') : file}`, import.meta.url))
  return isCompiled ? [path] : ['--import=tsx', path]
}
