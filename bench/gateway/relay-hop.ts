import { setTimeout } from 'node:timers/promises'
import { cpuMicroseconds, residentMebibytes } from '../harness/cpu.js'
import { type BenchProcess, flagsOf, SERVER_CORE, startProcess } from '../harness/process.js'
import { median } from '../harness/statistics.js'
import type { Block } from '../harness/suite.js'
import { goalTable, grouped, roundsText, table } from '../harness/table.js'
import { closeAll, Load, openOrder } from '../relay/load-process.js'
import { positionBatch } from '../relay/position-batch.js'
import { KEY, type RunningServer } from '../relay/running-server.js'
import { RELAY, startServer } from '../relay/servers.js'

const SUBSCRIBERS = 300
const PER_SECOND = 20
const IDLE_MS = 3000
const WARM_CLIENTS = 100
const IDLE_CLIENTS = 2000

const DIRECT = 'directly at the relay'
const THROUGH = 'through a gateway with RELAY_UPSTREAM'

interface Reading {
  /** CPU time per delivery. */
  readonly relay: number
  readonly gateway: number
  readonly p50: number
  readonly p99: number
}

export interface RelayHopOptions {
  readonly rounds: number
  readonly seconds: number
}

/** Measures deliveries to subscribers that connect to the relay, and to subscribers that connect through a gateway, in turns. */
export const relayHopBlock = async ({ rounds, seconds }: RelayHopOptions): Promise<Block> => {
  const load = new Load()
  const relay = await startServer(RELAY, SERVER_CORE, { TRUST_PROXY: 'loopback' })
  const gateway = startGateway(relay)
  try {
    const [, port] = await gateway.line(/listening at http:\/\/[^:]+:(\d+)/)
    const memory = await memoryPerConnection(load, gateway, { ...relay, ports: [Number(port)] })
    const readings = new Map<string, Reading[]>()
    for (let round = -1; round < rounds; round++) {
      for (const [setup, clientPorts] of [
        [DIRECT, relay.ports],
        [THROUGH, [Number(port)]]
      ] as const) {
        const reading = await measure(load, { relay, gateway, clientPorts }, seconds)
        // The first round only warms up.
        if (round >= 0) readings.set(setup, [...(readings.get(setup) ?? []), reading])
      }
    }
    return report(readings, memory, rounds)
  } finally {
    await Promise.all([load.stop(), gateway.stop(), relay.stop()])
  }
}

const startGateway = ({ ports: [port] }: RunningServer): BenchProcess => {
  const env = {
    BACKEND_URL: 'http://127.0.0.1:1',
    API_SECRET: 'a-secret-for-benchmarks-0123456789abcdef',
    GATEWAY_PORT: '0',
    AUDIT_LOG_FILE: '/dev/null',
    RELAY_UPSTREAM: `http://127.0.0.1:${port}`,
    RELAY_UPSTREAM_CONNECTIONS_PER_ADDRESS: String(IDLE_CLIENTS)
  }
  return startProcess(SERVER_CORE, new URL('./servers/gatehouse.js', import.meta.url), env, flagsOf('gateway'))
}

/** KiB of the gateway for each idle connection, after some connections as warm-up. */
const memoryPerConnection = async (load: Load, gateway: BenchProcess, server: RunningServer): Promise<number> => {
  await load.run(openOrder(server, WARM_CLIENTS, 1))
  await closeAll(load)
  const before = residentMebibytes(gateway.pid)
  await load.run(openOrder(server, IDLE_CLIENTS, 1))
  await setTimeout(IDLE_MS)
  const after = residentMebibytes(gateway.pid)
  await closeAll(load)
  return ((after - before) * 1024) / IDLE_CLIENTS
}

interface Setup {
  readonly relay: RunningServer
  readonly gateway: BenchProcess
  readonly clientPorts: readonly number[]
}

const measure = async (load: Load, { relay, gateway, clientPorts }: Setup, seconds: number): Promise<Reading> => {
  const [relayPid = 0] = relay.pids
  await load.run(openOrder({ ...relay, ports: clientPorts }, SUBSCRIBERS, 1))
  const [relayBefore, gatewayBefore] = [cpuMicroseconds(relayPid), cpuMicroseconds(gateway.pid)]
  const { deliveries, p50, p99 } = await load.run({
    kind: 'publish',
    ports: relay.ports,
    key: KEY,
    data: positionBatch(),
    channels: 1,
    connections: 8,
    seconds,
    perSecond: PER_SECOND
  })
  const reading = {
    relay: (cpuMicroseconds(relayPid) - relayBefore) / deliveries,
    gateway: (cpuMicroseconds(gateway.pid) - gatewayBefore) / deliveries,
    p50,
    p99
  }
  await closeAll(load)
  return reading
}

const report = (readings: ReadonlyMap<string, readonly Reading[]>, memory: number, rounds: number): Block => {
  const rows = [...readings].map(([setup, list]) => {
    const of = (pick: (reading: Reading) => number): string => median(list.map(pick)).toFixed(1)
    return [
      setup,
      of(({ relay }) => relay),
      setup === THROUGH ? of(({ gateway }) => gateway) : '–',
      of(({ p50 }) => p50),
      of(({ p99 }) => p99)
    ]
  })
  return {
    name: 'relay behind the gateway',
    markdown: [
      `Medians of ${roundsText(rounds)}: 2.5 KB to ${SUBSCRIBERS} subscribers of one channel, ${PER_SECOND} publishes/s. Memory of the gateway: ${memory.toFixed(0)} KiB per idle connection, at ${grouped(IDLE_CLIENTS)}.`,
      table(['subscribers', 'relay, CPU µs/delivery', 'gateway, CPU µs/delivery', 'p50 ms', 'p99 ms'], rows),
      goalTable([
        {
          what: 'a WebSocket message through the gateway',
          measured: median((readings.get(THROUGH) ?? []).map(({ gateway }) => gateway)),
          atMost: 25,
          unit: ' µs'
        }
      ])
    ].join('\n\n')
  }
}
