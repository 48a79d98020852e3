/** `npm run build`: compiles the programs and builds the two web pages into `dist`. */
import { parseArgs } from 'node:util'
import { startBuild } from './lib/build.js'
import { print, runCommand } from './lib/command.js'

const USAGE = `Usage: npm run build [-- --no-demo]

  --no-demo  without the page of the demo

Each part is kept while its sources are unchanged. Types are checked by \`npm run typecheck\`.`

await runCommand(USAGE, async (args) => {
  const { values } = parseArgs({ args: [...args], options: { 'no-demo': { type: 'boolean', default: false } } })
  const run = async <Result>(title: string, work: () => Promise<Result>): Promise<Result> => {
    const startMs = performance.now()
    const result = await work()
    print(`${title}: ${((performance.now() - startMs) / 1000).toFixed(1)} s`)
    return result
  }
  const { programs, pages } = startBuild({ run, hasDemo: !values['no-demo'] })
  await Promise.all([programs, pages])
  return 0
})
