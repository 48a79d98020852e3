import { demoScene, gatewayScene, relayScene, type Scene } from './scenes.js'

/** An image, and what must be true of it. */
export interface ImageTest {
  readonly dockerfile: string
  readonly scene: (port: number) => Promise<Scene>
  /** What must not be in it. */
  readonly strangers: readonly RegExp[]
  /** How large it may be; where unset, nobody minds. */
  readonly mostMb?: number
}

const MOST_MB = 200

const NOT_TO_RUN = [
  /^\/app\/.*(?:\.ts|\.vue|\.map|\.test\.[cm]?js)$/,
  /^\/app\/.*\/tests?\//,
  /^\/build\//,
  /\/npm-cli\.js$/
]
const DEMO = /^\/app\/dist\/(?:demo|web)\//

export const IMAGES: Readonly<Record<string, ImageTest>> = {
  gateway: {
    dockerfile: 'Dockerfile.gateway',
    scene: gatewayScene,
    mostMb: MOST_MB,
    strangers: [...NOT_TO_RUN, DEMO, /^\/app\/dist\/src\/(?:relay|client)\//, /^\/app\/node_modules\/centrifuge\//]
  },
  relay: {
    dockerfile: 'Dockerfile.relay',
    scene: relayScene,
    mostMb: MOST_MB,
    strangers: [
      ...NOT_TO_RUN,
      DEMO,
      /^\/app\/dist\/src\/(?:gateway|client)\//,
      /^\/app\/node_modules\/(?:fastify|pg)\//
    ]
  },
  demo: { dockerfile: 'demo/Dockerfile', scene: demoScene, strangers: NOT_TO_RUN }
}
