import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

const NOBODY = 65534

export interface ReadOnlyFolder {
  readonly folder: string
  /** The error code of a write. */
  readonly code: 'EROFS' | 'EACCES'
  readonly makeWritable: () => void
}

/**
 * A folder that cannot be written. Permission bits do not apply to root, so root mounts a read-only file system, or, where
 * a container forbids mounting, changes its effective user during the test. Other users need the permission bits only.
 */
export const readOnlyFolder = (t: Test): ReadOnlyFolder => {
  const base = mkdtempSync(join(tmpdir(), 'gatehouse-read-only-'))
  t.teardown(() => rmSync(base, { recursive: true }))
  chmodSync(base, 0o755)
  const folder = join(base, 'folder')
  mkdirSync(folder)
  const isRoot = process.geteuid?.() === 0
  return (isRoot && mounted(t, folder)) || forbidden(t, folder, isRoot)
}

const mounted = (t: Test, folder: string): ReadOnlyFolder | undefined => {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'ro', 'tmpfs', folder], { stdio: 'pipe' })
  } catch (error) {
    t.comment(`no mount here, using permission bits instead: ${error instanceof Error ? error.message : error}`)
    return undefined
  }
  t.comment(`read-only by a tmpfs mount at ${folder}`)
  t.teardown(() => execFileSync('umount', [folder]))
  const makeWritable = () => execFileSync('mount', ['-o', 'remount,rw', folder])
  return { folder, code: 'EROFS', makeWritable }
}

const forbidden = (t: Test, folder: string, isRoot: boolean): ReadOnlyFolder => {
  const beRoot = () => isRoot && process.seteuid?.(0)
  chmodSync(folder, 0o555)
  if (isRoot) process.seteuid?.(NOBODY)
  t.comment(`read-only by permission bits, as user ${process.geteuid?.()}`)
  t.teardown(beRoot)
  const makeWritable = () => {
    beRoot()
    chmodSync(folder, 0o755)
  }
  return { folder, code: 'EACCES', makeWritable }
}
