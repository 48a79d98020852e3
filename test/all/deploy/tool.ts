import { thisMachine } from '../../../scripts/lib/services.js'
import { type Child, type Exit, startChild, type Teardown } from '../../helper/child.js'
import { environment } from '../../helper/environment.js'

export const toolOnPath = (name: string): string => {
  const file = thisMachine({ PATH: environment.path }).find(name)
  if (file === undefined) throw new Error(`this test needs ${name}, which is not on the PATH`)
  return file
}

/** Starts an installed program, which runs until the end of the test. */
export const startTool = (
  t: Teardown,
  name: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {}
): Promise<Child> => startChild(t, toolOnPath(name), args, { PATH: environment.path, ...env })

/** Runs an installed program to its end and returns its output. Rejects with the output if the program fails. */
export const runTool = async (
  t: Teardown,
  name: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {}
): Promise<string> => {
  const { exit, output } = await tryTool(t, name, args, env)
  if (exit.code !== 0) throw new Error(`${name} ${args.join(' ')} ended with ${exit.code ?? exit.signal}:\n${output}`)
  return output
}

/** Runs an installed program that may fail. */
export const tryTool = async (
  t: Teardown,
  name: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {}
): Promise<{ readonly exit: Exit; readonly output: string }> => {
  const child = await startTool(t, name, args, env)
  const exit = await child.exited
  return { exit, output: child.stdout + child.stderr }
}
