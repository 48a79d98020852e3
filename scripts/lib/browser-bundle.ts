import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, transformWithEsbuild } from 'vite'
import { ROOT } from './root.js'

const NAME = 'browser.js'
const LICENCES = 'browser-licences.txt'

/** Writes `browser.js`, one ES module with all that the entry imports, and the licences of the packages in it. */
export const writeBundle = async (entry: string, folder: string): Promise<void> => {
  const result = await build({
    root: ROOT,
    configFile: false,
    logLevel: 'warn',
    build: { lib: { entry, formats: ['es'], fileName: () => NAME }, write: false, target: 'es2022' }
  })
  const [chunk] = [result].flat().flatMap((each) => ('output' in each ? each.output : []))
  if (chunk?.type !== 'chunk') throw new Error(`${entry} was not bundled into one module`)
  const packages = new Set(
    chunk.moduleIds.flatMap((id) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1] ?? [])
  )
  const banner = `/*! gatehouse-client, MIT. Contains ${[...packages].join(', ')}: see ${LICENCES} of the package. */\n`
  // Vite keeps the white space of ES libraries.
  const { code } = await transformWithEsbuild(chunk.code, NAME, { minify: true, sourcemap: false })
  writeFileSync(join(folder, NAME), banner + code)
  writeFileSync(join(folder, LICENCES), [...packages].map(licenceOf).join('\n'))
}

const licenceOf = (name: string): string => {
  const folder = join(ROOT, 'node_modules', name)
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each))
  if (file === undefined) throw new Error(`${name} has no licence file`)
  return `${name}\n${'-'.repeat(name.length)}\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`
}
