import { type Browser, chromium } from 'playwright-core'
import { programOnPath } from '../../scripts/lib/program-on-path.js'
import { chromium as service } from '../../scripts/lib/services.js'
import type { Teardown } from './child.js'
import { environment } from './environment.js'

/** A generous limit for one step on a busy machine. */
export const PATIENCE_MS = 120_000

/** Starts a Chromium for one test. */
export const startBrowser = async (t: Teardown): Promise<Browser> => {
  const installed = service.programs.map((program) => programOnPath(program, environment.path))
  const executablePath = environment.chromiumPath ?? installed.find((program) => program !== undefined)
  if (executablePath === undefined) throw new Error('no Chromium: set CHROMIUM_PATH, or put chromium on the PATH')
  // Tests run as root in containers, where Chromium's own sandbox cannot be set up. Without a GPU, emulating one costs more
  // than drawing in software.
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
  t.teardown(() => browser.close())
  return browser
}
