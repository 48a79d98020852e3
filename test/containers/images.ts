import { demoScene, gatewayScene, relayScene, type Scene } from './scenes.js'

/** An image and its checks. */
export interface ImageTest {
  readonly dockerfile: string
  readonly scene: (port: number) => Promise<Scene>
  /** Files that the image must not contain. */
  readonly forbiddenFiles: readonly RegExp[]
  /** The maximum size; unlimited if unset. */
  readonly maxMb?: number
}

const MAX_MB = 200

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
    scene: gatewayScene,
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
    scene: relayScene,
    maxMb: MAX_MB,
    forbiddenFiles: [
      ...DEVELOPMENT_FILES,
      DEMO,
      /^\/app\/dist\/src\/(?:gateway|client)\//,
      /^\/app\/node_modules\/(?:fastify|pg)\//
    ]
  },
  demo: { dockerfile: 'demo/Dockerfile', scene: demoScene, forbiddenFiles: DEVELOPMENT_FILES }
}
