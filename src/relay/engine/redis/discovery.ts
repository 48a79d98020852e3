import { setTimeout } from 'node:timers/promises'
import { Command } from 'ioredis'
import type { RedisAddress } from './address.js'
import { faultText, openConnection } from './connection.js'
import { serverInfo } from './server-info.js'

const AGAIN_MS = 200

/** One question over a connection of its own, to a server of which nothing is known yet. */
export const askServer = async (address: RedisAddress, name: string, args: readonly string[]): Promise<unknown> => {
  const redis = openConnection(address, 'discovery')
  try {
    await new Promise((resolve, reject) => {
      let cause: Error | null = null
      redis.once('ready', resolve)
      redis.on('error', (error: Error) => {
        cause = error
      })
      redis.once('close', () => reject(cause ?? new Error('the connection was closed')))
    })
    return await redis.sendCommand(new Command(name, [...args], { replyEncoding: 'utf8' }))
  } finally {
    redis.disconnect()
  }
}

/** Whether the addresses are those of a cluster, as the first that answers says. Throws the fault that is hopeless. */
export const isClusterAt = async (
  addresses: readonly RedisAddress[],
  isHopeless: (fault: string) => boolean
): Promise<boolean> => {
  for (;;) {
    for (const address of addresses) {
      try {
        return serverInfo(String(await askServer(address, 'info', []))).isCluster
      } catch (error) {
        const fault = faultText(address, error)
        if (isHopeless(fault)) throw new Error(fault)
      }
    }
    await setTimeout(AGAIN_MS)
  }
}
