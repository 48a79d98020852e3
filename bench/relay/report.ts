import { median, medianRatio } from '../harness/statistics.js'
import type { Block, Capacity } from '../harness/suite.js'
import { type Goal, goalTable, grouped, roundsText, table } from '../harness/table.js'
import {
  CONNECT,
  CPU_SCENARIOS,
  FAN_OUT_FIXED,
  FAN_OUT_SATURATED,
  MANY_CHANNELS_FIXED,
  MANY_CHANNELS_SATURATED,
  MEMORY
} from './scenarios.js'
import { CENTRIFUGO, COALESCING, RELAY, RELAY_PROTOBUF, SEND_LOOP, type ServerName } from './servers.js'

export interface Reading {
  /** CPU time or memory for one unit of work. */
  readonly value: number
  /** Units of work per second. */
  readonly rate: number
  readonly p50: number
  readonly p99: number
  readonly p999: number
  /** CPU utilisation of the server and of the load generator, from 0 to 1. */
  readonly serverShare: number
  readonly loadShare: number
}

/** The readings of every scenario and server, one per round. */
export class Readings {
  readonly servers: readonly ServerName[]
  readonly #all = new Map<string, Reading[]>()

  constructor(servers: readonly ServerName[]) {
    this.servers = servers
  }

  add(scenario: string, server: ServerName, reading: Reading): void {
    const key = `${scenario} | ${server}`
    this.#all.set(key, [...(this.#all.get(key) ?? []), reading])
  }

  median(scenario: string, server: ServerName, pick: (reading: Reading) => number = ({ value }) => value): number {
    return median((this.#all.get(`${scenario} | ${server}`) ?? []).map(pick))
  }

  ratio(scenario: string, peer: ServerName, server: ServerName = RELAY): number {
    return medianRatio(this.#values(scenario, server), this.#values(scenario, peer))
  }

  #values(scenario: string, server: ServerName): readonly number[] {
    return (this.#all.get(`${scenario} | ${server}`) ?? []).map(({ value }) => value)
  }
}

export interface SuiteFacts {
  readonly rounds: number
  readonly seconds: number
  readonly memoryRounds: number
  /** Actual and requested number of connections of the memory reading. */
  readonly clients: number
  readonly connections: number
}

export const relayBlock = (readings: Readings, facts: SuiteFacts): Block => {
  const fewer = facts.clients < facts.connections ? ', limited by the number of open files' : ''
  const memory = `${MEMORY} at ${grouped(facts.clients)}${fewer}`
  const servers = readings.servers.filter((server) => server !== RELAY_PROTOBUF)
  const row = (title: string, scenario: string): string[] => [
    title,
    ...servers.map((server) => significant(readings.median(scenario, server)))
  ]
  return {
    name: 'relay',
    markdown: [
      `Medians of ${roundsText(facts.rounds)} of ${facts.seconds} s, of ${roundsText(facts.memoryRounds)} for memory. The ratios are medians of the ratios of each round.`,
      table(['CPU µs', ...servers], [...CPU_SCENARIOS.map((name) => row(name, name)), row(memory, MEMORY)]),
      goalTable(goals(readings)),
      disturbance(readings)
    ].join('\n\n')
  }
}

export const protobufBlock = (readings: Readings): Block => ({
  name: 'protobuf',
  markdown: table(
    ['CPU µs', 'JSON', 'protobuf', 'ratio', 'goal: at most'],
    [...CPU_SCENARIOS, MEMORY].map((scenario) => [
      scenario,
      significant(readings.median(scenario, RELAY)),
      significant(readings.median(scenario, RELAY_PROTOBUF)),
      readings.ratio(scenario, RELAY, RELAY_PROTOBUF).toFixed(2),
      '1.10'
    ])
  )
})

const significant = (value: number): string => value.toFixed(value < 100 ? 1 : 0)

const KIB_PER_GIGABYTE = 1e9 / 1024

/** What one core delivers when it does nothing else, and how many idle connections one GB holds. */
export const relayCapacities = (readings: Readings): Capacity[] =>
  readings.servers
    .filter((server) => server !== RELAY_PROTOBUF)
    .map((server) => ({
      server: server === RELAY ? 'Gatehouse' : server,
      connectionsPerGigabyte: KIB_PER_GIGABYTE / readings.median(MEMORY, server),
      deliveriesPerSecond: 1e6 / readings.median(FAN_OUT_SATURATED, server)
    }))

/** Below this share of a core at full load, other programs ran on the same cores. */
const FULL = 0.9
const FULL_LOAD = [FAN_OUT_SATURATED, MANY_CHANNELS_SATURATED, CONNECT]

const disturbance = (readings: Readings): string => {
  const shares = FULL_LOAD.map((scenario) =>
    Math.max(
      readings.median(scenario, RELAY, ({ serverShare }) => serverShare),
      readings.median(scenario, RELAY, ({ loadShare }) => loadShare)
    )
  )
  const least = Math.min(...shares)
  return least >= FULL
    ? 'At full load the server or the load generator used at least 90 % of its core.'
    : `Disturbed: at full load neither core was busy for more than ${(least * 100).toFixed(0)} % of the time, because other programs ran. Repeat it on a quiet machine.`
}

const goals = (readings: Readings): Goal[] => {
  const goal = (scenario: string, peer: ServerName, atMost: number): Goal[] =>
    readings.servers.includes(peer)
      ? [{ what: `${scenario}, to the ${peer}`, measured: readings.ratio(scenario, peer), atMost, unit: '' }]
      : []
  return [
    ...goal(FAN_OUT_SATURATED, SEND_LOOP, 0.15),
    ...goal(FAN_OUT_SATURATED, COALESCING, 1.2),
    ...goal(FAN_OUT_SATURATED, CENTRIFUGO, 1),
    ...goal(FAN_OUT_FIXED, SEND_LOOP, 0.6),
    ...goal(FAN_OUT_FIXED, COALESCING, 1.15),
    ...goal(FAN_OUT_FIXED, CENTRIFUGO, 1),
    ...goal(MANY_CHANNELS_SATURATED, SEND_LOOP, 0.55),
    ...goal(MANY_CHANNELS_SATURATED, COALESCING, 1),
    ...goal(MANY_CHANNELS_SATURATED, CENTRIFUGO, 1),
    ...goal(MANY_CHANNELS_FIXED, COALESCING, 1.1),
    ...goal(CONNECT, SEND_LOOP, 1.2),
    ...goal(MEMORY, SEND_LOOP, 1.1),
    ...goal(MEMORY, CENTRIFUGO, 1)
  ]
}
