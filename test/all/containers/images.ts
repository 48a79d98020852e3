import { demoScenario, gatewayScenario, relayScenario, type Scenario } from './scenarios.js'

/** An image and its checks. */
export interface ImageTest {
  readonly dockerfile: string
  readonly scenario: (port: number) => Promise<Scenario>
  /** Files that the image must not contain. */
  readonly forbiddenFiles: readonly RegExp[]
  /** The maximum size; unlimited if unset. */
  readonly maxMb?: number
}

const MAX_MB = 240

const DEVELOPMENT_FILES = [
  /^\/app\/.*(?:\.ts|\.vue|\.map|\.test\.[cm]?js)$/,
  /^\/app\/.*\/tests?\//,
  /^\/build\//,
  /\/npm-cli\.js$/
]
const DEMO = /^\/app\/dist\/(?:demo|web)\//

export const IMAGES: Readonly<Record<string, ImageTest>> = {
  gateway: {
    dockerfile: 'Dockerfile.gateway',
    scenario: gatewayScenario,
    maxMb: MAX_MB,
    forbiddenFiles: [
      ...DEVELOPMENT_FILES,
      DEMO,
      /^\/app\/dist\/src\/(?:relay|client)\//,
      /^\/app\/node_modules\/centrifuge\//
    ]
  },
  relay: {
    dockerfile: 'Dockerfile.relay',
    scenario: relayScenario,
    maxMb: MAX_MB,
    forbiddenFiles: [
      ...DEVELOPMENT_FILES,
      DEMO,
      /^\/app\/dist\/src\/(?:gateway|client)\//,
      /^\/app\/node_modules\/(?:fastify|pg)\//
    ]
  },
  demo: { dockerfile: 'demo/Dockerfile', scenario: demoScenario, forbiddenFiles: DEVELOPMENT_FILES }
}
