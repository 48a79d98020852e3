import { defineConfig } from 'vite'

const GATEWAY = process.env.GATEWAY_URL ?? 'http://localhost:3000'

// The gateway and the relay compare Origin with Host, and Vite's short form of `proxy` replaces Host. With
// `changeOrigin: false` both are the address of the development server.
const toGateway = { target: GATEWAY, changeOrigin: false }

export default defineConfig({
  server: { proxy: { '/api': toGateway, '/auth/oidc': toGateway, '/connection': { ...toGateway, ws: true } } }
})
