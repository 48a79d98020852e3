import { readdir, readFile, writeFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { Plugin } from 'vite'

const COMPRESSIBLE: ReadonlySet<string> = new Set(['.css', '.html', '.js', '.json', '.svg', '.txt', '.webmanifest'])

/** Slightly larger than with the maximum, for a fraction of the CPU time. */
const BROTLI_QUALITY = 9

/** Writes a `.br` and a `.gz` copy of every text file of the build, which a server with `WEB_ROOT` sends. */
export const compressedCopies = (): Plugin => ({
  name: 'compressed-copies',
  apply: 'build',
  async writeBundle({ dir = '' }) {
    const entries = await readdir(dir, { recursive: true, withFileTypes: true })
    const files = entries.filter((entry) => entry.isFile() && COMPRESSIBLE.has(extname(entry.name)))
    await Promise.all(files.map(({ parentPath, name }) => compress(join(parentPath, name))))
  }
})

const compress = async (file: string): Promise<void> => {
  const content = await readFile(file)
  const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }
  await Promise.all([
    promisify(brotliCompress)(content, quality).then((compressed) => writeFile(`${file}.br`, compressed)),
    promisify(gzip)(content, { level: constants.Z_BEST_COMPRESSION }).then((compressed) =>
      writeFile(`${file}.gz`, compressed)
    )
  ])
}
