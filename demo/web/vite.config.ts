import vue from '@vitejs/plugin-vue'
import { defineConfig } from 'vite'
import { compressedCopies } from '../compressed-copies.js'

export default defineConfig({
  plugins: [vue(), compressedCopies()],
  build: {
    outDir: '../../dist/web',
    emptyOutDir: true,
    target: 'es2022'
  },
  // `npx vite demo/web` for work on the page: everything else is the running gateway's.
  server: { port: 5173, proxy: { '/api': 'http://localhost:3000', '/auth/oidc': 'http://localhost:3000' } }
})
