import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './port.js'
import { LOAD_CORE } from './process.js'

export interface BenchRedis {
  readonly url: string
  readonly pid: number
  stop(): Promise<void>
}

/** A Redis on the core of the load generator; null if redis-server cannot be started. */
export const startBenchRedis = async (): Promise<BenchRedis | null> => {
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-redis-'))
  const server = ['redis-server', '--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '']
  const redis = spawn('taskset', ['-c', LOAD_CORE, ...server], { stdio: ['ignore', 'pipe', 'ignore'] })
  const stop = async (): Promise<void> => {
    if (redis.exitCode === null && redis.signalCode === null) {
      redis.kill('SIGKILL')
      await once(redis, 'exit')
    }
    rmSync(folder, { recursive: true, force: true })
  }
  const { pid } = redis
  if ((await isServing(redis)) && pid !== undefined) return { url: `redis://127.0.0.1:${port}`, pid, stop }
  await stop()
  return null
}

const isServing = (redis: ChildProcess): Promise<boolean> =>
  new Promise((resolve) => {
    let output = ''
    redis.stdout?.on('data', (data) => {
      output += String(data)
      if (output.includes('Ready to accept connections')) resolve(true)
    })
    redis.once('exit', () => resolve(false))
    redis.once('error', () => resolve(false))
  })
