import { cpSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { eventually } from '../helper/eventually.js'
import { required } from '../helper/required.js'
import { channelsOf, relayFile } from './channels.js'
import type { Random } from './random.js'
import { DEADLINE_MS } from './relay-process.js'
import type { Report, Subscriber } from './subscriber.js'
import type { RedisNodes, Topology, WorkerRelay } from './topology.js'

export interface Fault {
  readonly kind: string
  /** It lasts so long that short runs leave it out. */
  readonly isLong?: boolean
  /** Causes the fault and ends it again. Resolves with what was done, for the report. */
  run(random: Random): Promise<string>
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`

/** Faults of nodes that share a Redis. */
export const redisFaults = (topology: RedisNodes): readonly Fault[] => {
  const { redis, relays, links } = topology
  const pickNode = (random: Random) => {
    const index = random.whole(0, relays.length - 1)
    return { relay: required(relays[index]), link: required(links[index]) }
  }
  const allHealthy = async (): Promise<void> => {
    await Promise.all(relays.map((relay) => relay.healthy()))
  }
  return [
    {
      kind: 'kill-node',
      run: async (random) => {
        const { relay } = pickNode(random)
        const ms = random.whole(0, 1_500)
        await relay.kill()
        await setTimeout(ms)
        await relay.start()
        return `SIGKILL of ${relay.name}, started again after ${seconds(ms)}`
      }
    },
    {
      kind: 'rolling-restart',
      run: async (random) => {
        for (const relay of random.shuffled(relays)) {
          await relay.stop()
          await relay.start()
        }
        return 'SIGTERM and start of every node in turn'
      }
    },
    {
      kind: 'freeze-node',
      run: async (random) => {
        const { relay } = pickNode(random)
        // Nodes take each other for gone after some seconds without a heartbeat: shorter and longer than that.
        const ms = random.whole(500, 9_000)
        relay.freeze()
        await setTimeout(ms)
        relay.thaw()
        await relay.healthy()
        return `SIGSTOP of ${relay.name} for ${seconds(ms)}`
      }
    },
    {
      kind: 'restart-redis-keeping-data',
      run: async (random) => {
        const ms = random.whole(0, 2_000)
        await redis.kill()
        // A node that is down or stopped at the same time cannot confirm its last write, so a new epoch is allowed.
        topology.loseData()
        await setTimeout(ms)
        await redis.restart()
        await allHealthy()
        return `SIGKILL of Redis, back with its data after ${seconds(ms)}`
      }
    },
    {
      kind: 'restart-redis-empty',
      run: async (random) => {
        const ms = random.whole(0, 2_000)
        await redis.kill()
        for (const file of readdirSync(redis.folder)) rmSync(join(redis.folder, file), { recursive: true })
        topology.loseData()
        await setTimeout(ms)
        await redis.restart()
        await allHealthy()
        return `SIGKILL of Redis, back empty after ${seconds(ms)}`
      }
    },
    {
      kind: 'roll-back-redis',
      run: async (random) => {
        const ms = random.whole(200, 1_500)
        const backup = `${redis.folder}-backup`
        cpSync(redis.folder, backup, { recursive: true })
        await setTimeout(ms)
        await redis.kill()
        rmSync(redis.folder, { recursive: true })
        cpSync(backup, redis.folder, { recursive: true })
        rmSync(backup, { recursive: true })
        topology.loseData()
        await redis.restart()
        await allHealthy()
        return `SIGKILL of Redis, back with the data of ${seconds(ms)} before`
      }
    },
    {
      kind: 'freeze-redis',
      run: async (random) => {
        const ms = random.whole(300, 4_000)
        redis.pause()
        await setTimeout(ms)
        redis.resume()
        await allHealthy()
        return `SIGSTOP of Redis for ${seconds(ms)}`
      }
    },
    {
      kind: 'cut-redis-link',
      run: async (random) => {
        const { relay, link } = pickNode(random)
        link.closeAll()
        await relay.healthy()
        return `connections of ${relay.name} to Redis closed`
      }
    },
    {
      kind: 'cut-subscriber-link',
      run: async (random) => {
        const { relay, link } = pickNode(random)
        for (let times = random.whole(1, 3); times > 0; times--) {
          link.closeSubscriber()
          await setTimeout(random.whole(50, 500))
        }
        await relay.healthy()
        return `subscriber connection of ${relay.name} to Redis closed`
      }
    },
    {
      kind: 'silence-subscriber-link',
      run: async (random) => {
        const { relay, link } = pickNode(random)
        link.silenceSubscriber()
        await setTimeout(random.whole(500, 3_000))
        return `nothing arrives on the subscriber connection of ${relay.name} to Redis`
      }
    },
    {
      kind: 'refuse-redis-link',
      run: async (random) => {
        const { relay, link } = pickNode(random)
        const ms = random.whole(300, 5_000)
        link.setRejecting(true)
        await setTimeout(ms)
        link.setRejecting(false)
        await relay.healthy()
        return `${relay.name} cannot connect to Redis for ${seconds(ms)}`
      }
    },
    reloadFault(topology)
  ]
}

/** Faults of one relay with several workers, which keeps its channels in memory. */
export const workerFaults = (topology: WorkerRelay, report: Report): readonly Fault[] => {
  const { relay } = topology
  /** Reports a worker that the test did not end, and picks one. */
  const pickWorker = (random: Random): number => {
    checkWorkers(topology, report)
    return random.pick(topology.known)
  }
  const replaced = async (pid: number): Promise<void> => {
    await eventually(() => !relay.workers().includes(pid), {
      label: `worker ${pid} has ended`,
      deadlineMs: DEADLINE_MS
    })
    await topology.allServe()
  }
  const restarted = async (stop: () => Promise<void>): Promise<void> => {
    checkWorkers(topology, report)
    topology.known = []
    await stop()
    topology.loseData()
    await relay.start()
    await topology.allServe()
  }
  return [
    {
      kind: 'kill-worker',
      run: async (random) => {
        const pid = pickWorker(random)
        process.kill(pid, 'SIGKILL')
        await replaced(pid)
        return `SIGKILL of worker ${pid}`
      }
    },
    {
      kind: 'stop-worker',
      run: async (random) => {
        const pid = pickWorker(random)
        process.kill(pid, 'SIGTERM')
        await replaced(pid)
        return `SIGTERM of worker ${pid}`
      }
    },
    {
      kind: 'freeze-worker',
      run: async (random) => {
        const pid = pickWorker(random)
        const ms = random.whole(500, 6_000)
        process.kill(pid, 'SIGSTOP')
        await setTimeout(ms)
        process.kill(pid, 'SIGCONT')
        return `SIGSTOP of worker ${pid} for ${seconds(ms)}`
      }
    },
    {
      kind: 'hang-worker',
      isLong: true,
      run: async (random) => {
        const pid = pickWorker(random)
        process.kill(pid, 'SIGSTOP')
        await replaced(pid)
        return `SIGSTOP of worker ${pid} until the primary replaced it`
      }
    },
    {
      kind: 'freeze-primary',
      run: async (random) => {
        const ms = random.whole(500, 4_000)
        relay.freeze()
        await setTimeout(ms)
        relay.thaw()
        await relay.healthy()
        return `SIGSTOP of the primary for ${seconds(ms)}`
      }
    },
    {
      kind: 'kill-primary',
      run: async () => {
        await restarted(() => relay.kill())
        return 'SIGKILL of the primary, started again'
      }
    },
    {
      kind: 'restart-relay',
      run: async () => {
        await restarted(() => relay.stop())
        return 'SIGTERM of the primary, started again'
      }
    },
    reloadFault(topology)
  ]
}

/** Workers end only when the test ends them. */
export const checkWorkers = ({ relay, known }: WorkerRelay, report: Report): void => {
  const workers = relay.workers()
  const isSame = workers.length === known.length && known.every((pid) => workers.includes(pid))
  if (isSame) return
  report({
    subject: relay.name,
    channel: '',
    rule: 'a process ends only when the test ends it',
    expected: `workers ${known.join(', ')}`,
    received: `workers ${workers.join(', ')}`
  })
}

const RELOADS = 4

const reloadFault = (topology: Topology): Fault => ({
  kind: 'reload',
  run: async (random) => {
    for (let times = random.whole(1, RELOADS); times > 0; times--) {
      // A file with a fault leaves the old configuration in force.
      const marker = random.whole(0, 9)
      topology.configure(marker === 0 ? '{' : JSON.stringify(relayFile(marker)))
      for (const relay of topology.relays) relay.reload()
      await setTimeout(random.whole(50, 500))
    }
    // A node that is started later needs a file without faults.
    topology.configure(JSON.stringify(relayFile(0)))
    for (const relay of topology.relays) relay.reload()
    return `SIGHUP of ${topology.name}`
  }
})

/** A disconnect code after which clients reconnect. */
const RECONNECT = { code: 4000, reason: 'soak' }
const BURST = { publications: 200, concurrency: 8 }
const LARGE_BURST = { publications: 250, concurrency: 8 }
const STORM_CLIENTS = 40

/** Faults of clients and publishers. */
export const clientFaults = (topologies: readonly Topology[], report: Report): readonly Fault[] => {
  const steady = ({ subscribers }: Topology): readonly Subscriber[] =>
    subscribers.filter(({ journals }) => journals.every(({ isTemporary }) => !isTemporary))
  return [
    {
      kind: 'slow-reader',
      run: async (random) => {
        const topology = random.pick(topologies)
        const channel = random.pick(channelsOf('bulk', 'floor'))
        const readers = steady(topology).filter(
          ({ journals }) => journals.length === 1 && journals[0]?.channel === channel
        )
        const paused = random.some(readers, readers.length - 1)
        for (const reader of paused) reader.pause()
        await topology.publisher.burst(channel, LARGE_BURST.publications, LARGE_BURST.concurrency)
        for (const reader of paused) reader.resume()
        return `${paused.length} clients of ${topology.name} stop reading ${channel.name} during ${LARGE_BURST.publications} large publications`
      }
    },
    {
      kind: 'reset-connections',
      run: async (random) => {
        const topology = random.pick(topologies)
        const all = steady(topology)
        const reset = random.some(all, random.whole(1, all.length))
        for (const subscriber of reset) subscriber.reset()
        return `connections of ${reset.length} clients of ${topology.name} broken`
      }
    },
    {
      kind: 'api-disconnect',
      run: async (random) => {
        const topology = random.pick(topologies)
        const chosen = random.some(steady(topology), 8)
        await Promise.all(chosen.map((subscriber) => disconnect(topology, subscriber, report)))
        return `${chosen.length} clients of ${topology.name} disconnected by the API`
      }
    },
    {
      kind: 'api-unsubscribe',
      run: async (random) => {
        const topology = random.pick(topologies)
        const chosen = random.some(steady(topology), 12)
        await Promise.all(
          chosen.map(({ user, journals }) =>
            topology.api.call('unsubscribe', { user, channel: random.pick(journals).channel.name })
          )
        )
        return `${chosen.length} clients of ${topology.name} unsubscribed by the API`
      }
    },
    {
      kind: 'api-refresh',
      run: async (random) => {
        const topology = random.pick(topologies)
        const chosen = random.some(steady(topology), 12)
        const expire_at = Math.floor(Date.now() / 1000) + random.whole(600, 3_600)
        await Promise.all(chosen.map(({ user }) => topology.api.call('refresh', { user, expire_at })))
        return `${chosen.length} clients of ${topology.name} refreshed by the API`
      }
    },
    {
      kind: 'publish-burst',
      run: async (random) => {
        const topology = random.pick(topologies)
        const channel = random.pick(channelsOf('seq', 'delta', 'short', 'cache'))
        await topology.publisher.burst(channel, BURST.publications, BURST.concurrency)
        return `${BURST.publications} publications on ${channel.name} of ${topology.name}`
      }
    },
    {
      kind: 'connection-storm',
      run: async (random) => {
        const topology = random.pick(topologies)
        const channels = channelsOf('seq', 'short', 'floor', 'live')
        const clients = Array.from({ length: STORM_CLIENTS }, () => topology.addTemporary(random.some(channels, 3)))
        await setTimeout(random.whole(500, 2_000))
        for (const client of clients) client.stop()
        return `${STORM_CLIENTS} clients join and leave ${topology.name}`
      }
    }
  ]
}

/** The API confirms a disconnect only when the connection is closed, or will be. */
const disconnect = async (topology: Topology, subscriber: Subscriber, report: Report): Promise<void> => {
  const { name, user, connection } = subscriber
  await topology.api.call('disconnect', { user, disconnect: RECONNECT })
  if (connection === null) return
  try {
    await eventually(() => subscriber.connection !== connection, {
      label: `${name} has lost its connection`,
      deadlineMs: DEADLINE_MS
    })
  } catch {
    report({
      subject: name,
      channel: '',
      rule: 'a confirmed disconnect closes the connection',
      expected: `a new connection after ${connection}`,
      received: 'the same connection'
    })
  }
}
