import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import ts from 'typescript'
import { ROOT } from '../../scripts/lib/root.js'

/** The imports of every TypeScript file below a folder, types included; all paths are relative to that folder. */
export const importGraph = (folder: string): ReadonlyMap<string, readonly string[]> => {
  const root = join(ROOT, folder)
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  return new Map(
    files.map((file) => {
      const { importedFiles } = ts.preProcessFile(readFileSync(join(root, file), 'utf8'))
      const imports = importedFiles
        .filter(({ fileName }) => fileName.startsWith('.'))
        .map(({ fileName }) => relative(root, resolve(root, dirname(file), fileName)).replace(/\.js$/, '.ts'))
      return [file, imports.filter((imported) => files.includes(imported))]
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
