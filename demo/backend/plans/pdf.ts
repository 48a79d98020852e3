import { Worker } from 'node:worker_threads'
import { HttpError } from '../errors.js'
import type { PdfError, PdfMessage, PdfResult } from './pdf-worker.js'

const WITHIN_MS = 15_000
/** Loading PDFium does not depend on the document, and takes long on a busy machine. */
const START_WITHIN_MS = 60_000
/** Each takes a core and memory for up to that time. */
const MAX_AT_ONCE = 2

const MESSAGES: Readonly<Record<PdfError, string>> = {
  broken: 'The PDF file is damaged or has no page.',
  encrypted: 'The PDF file is protected with a password. Remove the password first.',
  'too-complex': 'The first page of the PDF file is too complex to be drawn. Export it as an image.'
}

let running = 0

/** The first page of a PDF document as PNG, drawn in a thread with limits of time and memory. */
export const firstPage = async (bytes: Uint8Array, withinMs = WITHIN_MS): Promise<Buffer> => {
  if (running >= MAX_AT_ONCE)
    throw new HttpError(503, 'BUSY', 'Other PDF files are being read. Try again in a few seconds.')
  running += 1
  const worker = new Worker(new URL('./pdf-worker.js', import.meta.url), {
    workerData: bytes,
    resourceLimits: { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32 },
    // PDFium writes remarks about damaged documents.
    stdout: true,
    stderr: true
  })
  try {
    const result = await resultOf(worker, withinMs)
    if ('error' in result) throw new HttpError(422, 'UNREADABLE_PDF', MESSAGES[result.error])
    return Buffer.from(result.image)
  } finally {
    await worker.terminate()
    running -= 1
  }
}

/** A thread that takes too long, or ends because of its limits or a defect of PDFium, has found the page too complex. */
const resultOf = async (worker: Worker, withinMs: number): Promise<PdfResult> => {
  let timer: NodeJS.Timeout | undefined
  const result = new Promise<PdfResult>((resolve) => {
    const fail = (): void => resolve({ error: 'too-complex' })
    timer = setTimeout(fail, START_WITHIN_MS)
    worker.on('message', (message: PdfMessage) => {
      clearTimeout(timer)
      if (message === 'started') timer = setTimeout(fail, withinMs)
      else resolve(message)
    })
    worker.on('error', fail)
    worker.on('exit', fail)
  })
  return result.finally(() => clearTimeout(timer))
}
