import { fileURLToPath } from 'node:url'
import vue from '@vitejs/plugin-vue'
import { defineConfig, loadEnv } from 'vite'
import { compressedCopies } from '../compressed-copies.js'

const { GATEWAY_PORT = '3000' } = loadEnv('development', process.cwd(), 'GATEWAY_PORT')

// The gateway compares Origin with Host, so Host must stay the address of the development server.
const toGateway = { target: `http://localhost:${GATEWAY_PORT}`, changeOrigin: false }

const client = fileURLToPath(new URL('../../src/client', import.meta.url))

export default defineConfig({
  // The package by its name, from the sources.
  resolve: {
    alias: [
      { find: /^gatehouse-client$/, replacement: `${client}/index.ts` },
      { find: 'gatehouse-client/buildings', replacement: `${client}/buildings/index.ts` },
      { find: 'gatehouse-client/vue-router', replacement: `${client}/vue-router.ts` },
      { find: /^gatehouse-client\/vue$/, replacement: `${client}/vue/index.ts` }
    ]
  },
  plugins: [vue(), compressedCopies()],
  build: {
    outDir: '../../dist/web',
    emptyOutDir: true,
    target: 'es2022'
  },
  // For development with `npx vite demo/web`: other requests go to the running gateway. The relay of the
  // demo accepts this port only.
  server: { port: 5173, strictPort: true, proxy: { '/api': toGateway, '/auth/oidc': toGateway } }
})
