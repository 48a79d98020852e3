import { fileURLToPath } from 'node:url'
import vue from '@vitejs/plugin-vue'
import { defineConfig } from 'vite'
import { compressedCopies } from '../compressed-copies.js'

// The gateway compares Origin with Host, so Host must stay the address of the development server.
const toGateway = { target: 'http://localhost:3000', changeOrigin: false }

const client = fileURLToPath(new URL('../../src/client', import.meta.url))

export default defineConfig({
  // The package by its name, from the sources.
  resolve: {
    alias: [
      { find: /^gatehouse-client$/, replacement: `${client}/index.ts` },
      { find: 'gatehouse-client/vue-router', replacement: `${client}/vue-router.ts` }
    ]
  },
  plugins: [vue(), compressedCopies()],
  build: {
    outDir: '../../dist/web',
    emptyOutDir: true,
    target: 'es2022'
  },
  // For development with `npx vite demo/web`: other requests go to the running gateway.
  server: { port: 5173, proxy: { '/api': toGateway, '/auth/oidc': toGateway } }
})
