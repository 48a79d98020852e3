import { fileURLToPath } from 'node:url'
import vue from '@vitejs/plugin-vue'
import { defineConfig, loadEnv } from 'vite'

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

const { RELAY_PORT = '8100' } = loadEnv('development', process.cwd(), 'RELAY_PORT')

export default defineConfig({
  root: here('.'),
  base: '/admin/',
  plugins: [vue()],
  build: {
    outDir: here('../../dist/relay-admin'),
    emptyOutDir: true,
    target: 'es2022',
    // The Content-Security-Policy does not allow data: URLs.
    assetsInlineLimit: 0
  },
  // `npx vite src/relay-admin` serves the page with hot reload; API requests go to a running relay.
  server: { port: 5174, proxy: { '/admin/api': `http://localhost:${RELAY_PORT}` } }
})
