import { chart } from '../harness/chart.js'
import { median, medianRatio } from '../harness/statistics.js'
import { type Goal, goalTable, table } from '../harness/table.js'
import {
  CONNECT,
  FAN_OUT_FIXED,
  FAN_OUT_SATURATED,
  MANY_CHANNELS_FIXED,
  MANY_CHANNELS_SATURATED,
  MEMORY,
  UNITS
} from './scenarios.js'
import { COALESCING, RELAY, RELAY_PROTOBUF, SEND_LOOP, SERVER_NAMES, type ServerName } from './servers.js'

export interface Reading {
  /** CPU time or memory for one unit of work. */
  readonly value: number
  /** Units of work per second. */
  readonly rate: number
  readonly p50: number
  readonly p99: number
  /** CPU utilisation of the server and of the load generator, from 0 to 1. */
  readonly serverShare: number
  readonly loadShare: number
}

/** The readings of every scenario and server, one per round. */
export class Readings {
  readonly #all = new Map<string, Reading[]>()

  add(scenario: string, server: ServerName, reading: Reading): void {
    const key = `${scenario} | ${server}`
    this.#all.set(key, [...(this.#all.get(key) ?? []), reading])
  }

  median(scenario: string, server: ServerName): Reading {
    const readings = this.#all.get(`${scenario} | ${server}`) ?? []
    const of = (pick: (reading: Reading) => number): number => median(readings.map(pick))
    return {
      value: of(({ value }) => value),
      rate: of(({ rate }) => rate),
      p50: of(({ p50 }) => p50),
      p99: of(({ p99 }) => p99),
      serverShare: of(({ serverShare }) => serverShare),
      loadShare: of(({ loadShare }) => loadShare)
    }
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
  readonly subscribers: number
  readonly channels: number
  /** Actual and requested number of connections of the memory reading. */
  readonly clients: number
  readonly connections: number
}

const PUBLISHING = [FAN_OUT_SATURATED, FAN_OUT_FIXED, MANY_CHANNELS_SATURATED, MANY_CHANNELS_FIXED]

export const report = (readings: Readings, facts: SuiteFacts): string =>
  [
    '## Relay\n',
    `Medians of ${facts.rounds} rounds, ratios too; each reading publishes 2.5 KB for ${facts.seconds} s to ${facts.subscribers} subscribers.`,
    'The relay has tokens, namespaces, history, recovery and limits on; its peers have tokens only.\n',
    ...PUBLISHING.map((scenario) => `${scenarioTable(readings, scenario)}\n`),
    `${connectTable(readings)}\n`,
    `${memoryTable(readings, facts)}\n`,
    "`*`: the load had no core left (95 % and more), so the rate is its limit and not the server's; compare CPU time.",
    '`~`: neither core was full, so other programs ran on this machine; run it again when it is quiet.\n',
    `${goalTable(goals(readings))}\n`,
    charts(readings)
  ].join('\n')

const BUSY = 0.95
const FREE = 0.9

/** Scenarios that use a core completely. */
const FULL_LOAD: ReadonlySet<string> = new Set([FAN_OUT_SATURATED, MANY_CHANNELS_SATURATED, CONNECT])

const rateText = (scenario: string, { rate, serverShare, loadShare }: Reading): string => {
  const isDisturbed = FULL_LOAD.has(scenario) && serverShare < FREE && loadShare < FREE
  return `${rate.toFixed(0)}${loadShare >= BUSY ? '*' : isDisturbed ? '~' : ''}`
}
const shares = ({ serverShare, loadShare }: Reading): string =>
  `${(serverShare * 100).toFixed(0)}/${(loadShare * 100).toFixed(0)}`

const rows = (readings: Readings, scenario: string, cells: (reading: Reading) => string[]): string[][] =>
  SERVER_NAMES.map((name) => {
    const reading = readings.median(scenario, name)
    return [name, reading.value.toFixed(1), readings.ratio(scenario, name).toFixed(2), ...cells(reading)]
  })

const scenarioTable = (readings: Readings, scenario: string): string =>
  table(
    [scenario, UNITS[scenario] ?? '', 'relay : it', 'per second', 'p50 ms', 'p99 ms', 'server/load %'],
    rows(readings, scenario, (reading) => [
      rateText(scenario, reading),
      reading.p50.toFixed(1),
      reading.p99.toFixed(1),
      shares(reading)
    ])
  )

const connectTable = (readings: Readings): string =>
  table(
    [CONNECT, UNITS[CONNECT] ?? '', 'relay : it', 'per second', 'server/load %'],
    rows(readings, CONNECT, (reading) => [rateText(CONNECT, reading), shares(reading)])
  )

const memoryTable = (readings: Readings, { clients, connections }: SuiteFacts): string => {
  const fewer = clients < connections ? ` (${connections} requested, limited by the number of open files)` : ''
  return table(
    [`${MEMORY}, at ${clients}${fewer}`, 'KiB', 'relay : it'],
    rows(readings, MEMORY, () => [])
  )
}

const goals = (readings: Readings): Goal[] => {
  const goal = (scenario: string, peer: ServerName, atMost: number): Goal => ({
    what: `${scenario}: of ${peer}`,
    measured: readings.ratio(scenario, peer),
    atMost,
    unit: ''
  })
  const protobufGoal = (scenario: string): Goal => ({
    what: `${scenario}: protobuf of JSON`,
    measured: readings.ratio(scenario, RELAY, RELAY_PROTOBUF),
    atMost: 1.1,
    unit: ''
  })
  return [
    ...[FAN_OUT_SATURATED, FAN_OUT_FIXED, MANY_CHANNELS_SATURATED, CONNECT, MEMORY].map(protobufGoal),
    goal(FAN_OUT_SATURATED, SEND_LOOP, 0.15),
    goal(FAN_OUT_SATURATED, COALESCING, 1.2),
    goal(FAN_OUT_FIXED, SEND_LOOP, 0.6),
    goal(MANY_CHANNELS_SATURATED, SEND_LOOP, 0.55),
    goal(CONNECT, SEND_LOOP, 1),
    goal(MEMORY, SEND_LOOP, 1.3)
  ]
}

const charts = (readings: Readings): string =>
  [FAN_OUT_SATURATED, FAN_OUT_FIXED, MANY_CHANNELS_SATURATED, CONNECT, MEMORY]
    .map((scenario) =>
      chart(
        `${scenario}: ${UNITS[scenario]}, less is better`,
        SERVER_NAMES.map((name) => {
          const { value } = readings.median(scenario, name)
          return { name, value, note: value.toFixed(1) }
        })
      )
    )
    .join('\n\n')
