import { setTimeout } from 'node:timers/promises'

const LOOK_MS = 20

/** For what no event tells. A test that waits in vain is stopped by the runner, which then names it. */
export const eventually = async (isSo: () => Promise<boolean> | boolean): Promise<void> => {
  while (!(await isSo())) await setTimeout(LOOK_MS)
}
