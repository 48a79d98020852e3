import { thisMachine } from '../../scripts/lib/services.js'
import { type Child, type Exit, startChild, type Teardown } from '../helper/child.js'
import { environment } from '../helper/environment.js'

const toolOnPath = (name: string): string => {
  const file = thisMachine({ PATH: environment.path }).find(name)
  if (file === undefined) throw new Error(`this test needs ${name}, which is not on the PATH`)
  return file
}

/** A program of the machine that runs until the test is over. */
export const startTool = (
  t: Teardown,
  name: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {}
): Promise<Child> => startChild(t, toolOnPath(name), args, { PATH: environment.path, ...env })

/** A program of the machine that does one thing. All that it said is in the result, or in the error where it failed. */
export const runTool = async (
  t: Teardown,
  name: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {}
): Promise<string> => {
  const { exit, said } = await tryTool(t, name, args, env)
  if (exit.code !== 0) throw new Error(`${name} ${args.join(' ')} ended with ${exit.code ?? exit.signal}:\n${said}`)
  return said
}

/** The same for one that may fail. */
export const tryTool = async (
  t: Teardown,
  name: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {}
): Promise<{ readonly exit: Exit; readonly said: string }> => {
  const child = await startTool(t, name, args, env)
  const exit = await child.exited
  return { exit, said: child.stdout + child.stderr }
}
