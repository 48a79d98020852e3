/** What one relay process holds. */
export interface RelayContent {
  readonly connections: number
  /** Bytes of all publications in the histories. */
  readonly historyBytes: number
}

/** Resident memory of a relay process. `npm run bench -- capacity` measures it. */
export interface MemoryCosts {
  /** A process without clients. */
  readonly idleMib: number
  /** Additional memory of a process that publishes: garbage that V8 has not collected yet. */
  readonly workMib: number
  /** A subscribed connection. */
  readonly connectionKib: number
}

export const relayMebibytes = ({ connections, historyBytes }: RelayContent, costs: MemoryCosts): number =>
  costs.idleMib + costs.workMib + (connections * costs.connectionKib) / 1024 + historyBytes / 2 ** 20
