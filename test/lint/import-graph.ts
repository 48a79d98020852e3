import { readdirSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join, relative } from 'node:path'
import ts from 'typescript'
import { ROOT } from '../../scripts/lib/root.js'

/** The scripts of a TypeScript or Vue file. */
export const scriptOf = (file: string): string => {
  const text = readFileSync(join(ROOT, file), 'utf8')
  if (!file.endsWith('.vue')) return text
  return [...text.matchAll(/<script[^>]*>(.*?)<\/script>/gs)].map(([, script = '']) => script).join('\n')
}

/** What a file imports, types included: paths from the root of the project, `node:fs`, `npm:ws`. Texts (`?raw`) are left out. */
export const importsOf = (file: string): string[] =>
  ts
    .preProcessFile(scriptOf(file))
    .importedFiles.filter(({ fileName }) => !fileName.includes('?'))
    .map(({ fileName }) => importTarget(file, fileName))

export const importTarget = (file: string, specifier: string): string => {
  if (specifier.startsWith('.')) return join(dirname(file), specifier).replace(/\.js$/, '.ts')
  return isBuiltin(specifier) ? `node:${specifier.replace(/^node:/, '')}` : `npm:${specifier}`
}

/** The imports of every TypeScript file below a folder; all paths are relative to that folder. */
export const importGraph = (folder: string): ReadonlyMap<string, readonly string[]> => {
  const files = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts')
  )
  const known = new Set(files)
  return new Map(
    files.map((file) => {
      const imports = importsOf(join(folder, file)).map((imported) => relative(folder, imported))
      return [file, imports.filter((imported) => known.has(imported))]
    })
  )
}

/** Merges the files of each folder into one node. A file directly in the root folder stays a node of its own. */
export const folderGraph = (files: ReadonlyMap<string, readonly string[]>): ReadonlyMap<string, readonly string[]> => {
  const folders = new Map<string, Set<string>>()
  for (const [file, imports] of files) {
    const node = nodeOf(file)
    const targets = folders.get(node) ?? new Set()
    for (const imported of imports) if (nodeOf(imported) !== node) targets.add(nodeOf(imported))
    folders.set(node, targets)
  }
  return new Map([...folders].map(([node, targets]) => [node, [...targets]]))
}

const nodeOf = (file: string): string => (dirname(file) === '.' || APART.has(file) ? file : dirname(file))

/** Files that combine the subfolders of their folder, whose other files the subfolders import. */
const APART: ReadonlySet<string> = new Set(['core/relay.ts'])

/** The groups of nodes that reach each other, sorted by name (strongly connected components of more than one node). */
export const cycles = (graph: ReadonlyMap<string, readonly string[]>): readonly (readonly string[])[] => {
  const reachable = new Map([...graph.keys()].map((node) => [node, reachableFrom(graph, node)]))
  const groups = [...graph.keys()].map((node) =>
    [...graph.keys()].filter((other) => reachable.get(node)?.has(other) && reachable.get(other)?.has(node)).toSorted()
  )
  // Every member of a group has found the same group.
  return groups.filter(([first, second], index) => second !== undefined && first === [...graph.keys()][index])
}

const reachableFrom = (graph: ReadonlyMap<string, readonly string[]>, start: string): ReadonlySet<string> => {
  const seen = new Set<string>()
  const pending = [start]
  for (let node = pending.pop(); node !== undefined; node = pending.pop())
    for (const next of graph.get(node) ?? [])
      if (!seen.has(next)) {
        seen.add(next)
        pending.push(next)
      }
  return seen
}
