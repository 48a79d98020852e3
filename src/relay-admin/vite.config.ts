import { fileURLToPath } from 'node:url'
import vue from '@vitejs/plugin-vue'
import { defineConfig } from 'vite'

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

export default defineConfig({
  root: here('.'),
  base: '/admin/',
  plugins: [vue()],
  build: {
    outDir: here('../../dist/relay-admin'),
    emptyOutDir: true,
    target: 'es2022',
    // The page's policy knows no data: addresses.
    assetsInlineLimit: 0
  },
  // `npx vite src/relay-admin` for work on the page: everything else is the running relay's.
  server: { port: 5174, proxy: { '/admin/api': 'http://localhost:8100' } }
})
