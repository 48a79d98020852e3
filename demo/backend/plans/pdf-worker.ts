import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parentPort, workerData } from 'node:worker_threads'
import { PDFiumLibrary } from '@hyzyla/pdfium'
import { type PixelSize, png } from '../png.js'

/**
 * The worker thread of `pdf.ts`: draws the first page of a PDF document as PNG. PDFium is compiled to WebAssembly, so that a
 * malicious document reaches neither files nor the memory of this process.
 */

export type PdfError = 'broken' | 'encrypted' | 'too-complex'
export type PdfResult = { readonly image: Uint8Array } | { readonly error: PdfError }
/** The thread reports that PDFium is loaded, and then the result. */
export type PdfMessage = 'started' | PdfResult

const send = (message: PdfMessage): void => parentPort?.postMessage(message)

/** Legible at the highest zoom, and small enough for browsers. */
const LONGEST_SIDE = 3000
/** PDFium asks for memory beyond this if a document has huge images. */
const MAX_MEMORY_BYTES = 384 * 1024 * 1024

const wasm = readFileSync(fileURLToPath(import.meta.resolve('@hyzyla/pdfium/pdfium.wasm')))

/** Starts PDFium, which gets memory up to the limit. */
const startPdfium = (onLimit: () => void): Promise<PDFiumLibrary> => {
  const instantiateWasm = (imports: WebAssembly.Imports, done: (instance: never) => void): WebAssembly.Exports => {
    const { env = {} } = imports
    const resize = env.emscripten_resize_heap
    const limited = (bytes: number): unknown => {
      if (bytes >>> 0 <= MAX_MEMORY_BYTES && typeof resize === 'function') return resize(bytes)
      onLimit()
      return 0
    }
    const instance = new WebAssembly.Instance(new WebAssembly.Module(wasm), {
      ...imports,
      env: { ...env, emscripten_resize_heap: limited }
    })
    // The types of the library say that it expects a module.
    done(instance as never)
    return instance.exports
  }
  return PDFiumLibrary.init({ instantiateWasm })
}

/** RGBA pixels as the rows of a PNG file. */
const rowsOf = (pixels: Uint8Array, { width, height }: PixelSize): Uint8Array => {
  const rows = new Uint8Array(height * (1 + width * 3))
  let to = 0
  for (let from = 0; from < width * height * 4; from += 4) {
    if (from % (width * 4) === 0) to += 1
    rows.set(pixels.subarray(from, from + 3), to)
    to += 3
  }
  return rows
}

const draw = async (bytes: Uint8Array): Promise<PdfResult> => {
  let isLimited = false
  try {
    const library = await startPdfium(() => {
      isLimited = true
    })
    send('started')
    const document = await library.loadDocument(bytes)
    if (document.getPageCount() < 1) return { error: 'broken' }
    const page = document.getPage(0)
    const { originalWidth, originalHeight } = page.getOriginalSize()
    const scale = LONGEST_SIDE / Math.max(originalWidth, originalHeight)
    const size = { width: Math.round(originalWidth * scale), height: Math.round(originalHeight * scale) }
    if (!(size.width >= 1 && size.height >= 1)) return { error: 'broken' }
    const { data } = await page.render({ render: 'bitmap', ...size })
    return isLimited ? { error: 'too-complex' } : { image: png(size, rowsOf(data, size)) }
  } catch (error) {
    if (isLimited) return { error: 'too-complex' }
    const isEncrypted = error instanceof Error && /password|security/i.test(error.message)
    return { error: isEncrypted ? 'encrypted' : 'broken' }
  }
}

send(await draw(workerData))
