/** Options of all suites. Undefined means the suite's default; a suite ignores the options that it has no use for. */
export interface SuiteOptions {
  readonly rounds?: number | undefined
  readonly requests?: number | undefined
  readonly seconds?: number | undefined
  readonly connections?: number | undefined
  /** The suite capacity writes the costs of this machine into this file, and scale reads them. */
  readonly machineFile?: string | undefined
  /** Fewer and shorter readings, to see that everything runs. */
  readonly isQuick?: boolean | undefined
}

/** A part of the report. A page of the docs has markers with the same name. */
export interface Block {
  readonly name: string
  readonly markdown: string
}

/** What a server achieves with one core or one GB of memory. */
export interface Capacity {
  readonly server: string
  readonly connectionsPerGigabyte?: number
  readonly deliveriesPerSecond?: number
  readonly requestsPerSecond?: number
}

/** An image of the page. */
export interface Chart {
  readonly file: string
  readonly svg: string
}

export interface SuiteResult {
  readonly blocks: readonly Block[]
  readonly capacities?: readonly Capacity[]
  readonly charts?: readonly Chart[]
}

export interface Suite {
  /** The names of the blocks that the suite returns. */
  readonly blocks: readonly string[]
  readonly run: (options: SuiteOptions) => Promise<SuiteResult>
  /** The suite runs only if it is named, because it takes long. */
  readonly isOnRequest?: boolean
}
