import { hasHelm, prepareHelm } from '../../scripts/lib/kubernetes-tools.js'
import { manifests } from '../../scripts/lib/manifests.js'
import { thisMachine } from '../../scripts/lib/services.js'
import { environment } from '../helper/environment.js'
import { type Manifest, manifestsOf } from './kubernetes-manifests.js'

export const machine = thisMachine(environment.all)
export const silent = (): void => undefined

/** For tests of the chart, because building Helm takes minutes. */
export const NEEDS_HELM = { skip: hasHelm(machine) ? false : 'Helm is not installed' }

export const helmProgram = (): Promise<string> => prepareHelm(machine, silent)

/** The documents of the plain manifests, by file name without ending. */
export const plainManifests = async (): Promise<(name: string) => Manifest[]> => {
  const files = manifests(await helmProgram())
  return (name) => manifestsOf(files.get(`${name}.yaml`) ?? '')
}
