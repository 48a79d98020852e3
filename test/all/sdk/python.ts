import { programOnPath } from '../../../scripts/lib/program-on-path.js'
import { environment } from '../../helper/environment.js'

/** The path of Python 3, which `npm run test:all` installs. */
export const pythonProgram = (): string => {
  const program = programOnPath('python3', environment.path)
  if (program === undefined) throw new Error('no python3 on the PATH')
  return program
}
