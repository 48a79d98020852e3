import { type Browser, chromium } from 'playwright-core'
import { chromium as chromiumService, programOf, type Service, thisMachine } from '../../scripts/lib/services.js'
import type { Teardown } from './child.js'
import { environment } from './environment.js'

/** A generous limit for one step on a busy machine. */
export const PATIENCE_MS = 180_000

const installed = (service: Service): string => {
  const found = programOf(service, thisMachine(environment.all))
  if (found !== undefined) return found
  throw new Error(`no ${service.name}: set ${service.variable}, or put ${service.programs[0]} on the PATH`)
}

/** Starts a Chromium for one test. */
export const startBrowser = async (t: Teardown): Promise<Browser> => {
  const executablePath = environment.chromiumPath ?? installed(chromiumService)
  // Tests run as root in containers, where Chromium's own sandbox cannot be set up. Without a GPU, emulating one costs more
  // than drawing in software.
  const args = ['--no-sandbox', '--disable-gpu']
  const browser = await chromium.launch({ executablePath, args, timeout: PATIENCE_MS })
  t.teardown(() => browser.close())
  return browser
}
