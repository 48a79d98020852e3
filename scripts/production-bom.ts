import type { Licensed } from './licences.js'

/** As much of a CycloneDX document as is looked at here. */
export interface Bom {
  readonly metadata: { readonly component: { readonly 'bom-ref': string } }
  readonly components: readonly { readonly 'bom-ref': string; readonly name: string; readonly version: string }[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[]
}

/**
 * A document of all packages without those that only development needs. npm could leave them out itself, and leaves out
 * with them what production needs too wherever a development package needs it as well (seen with npm 11).
 */
export const onlyProduction = (bom: Bom, production: readonly Licensed[]): Bom => {
  const wanted = new Set(production.map(({ name, version }) => `${name}@${version}`))
  const components = bom.components.filter(({ name, version }) => wanted.has(`${name}@${version}`))
  const kept = new Set([bom.metadata.component['bom-ref'], ...components.map((component) => component['bom-ref'])])
  const dependencies = bom.dependencies
    .filter(({ ref }) => kept.has(ref))
    .map((dependency) => ({ ...dependency, dependsOn: dependency.dependsOn.filter((ref) => kept.has(ref)) }))
  return { ...bom, components, dependencies }
}
