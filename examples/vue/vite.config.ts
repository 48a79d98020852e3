import vue from '@vitejs/plugin-vue'
import { defineConfig } from 'vite'

// The gateway compares Origin with Host, so Host must stay the address of the development server.
const toGateway = { target: process.env.GATEWAY_URL ?? 'http://localhost:3000', changeOrigin: false }

export default defineConfig({
  plugins: [vue()],
  server: { proxy: { '/api': toGateway, '/auth/oidc': toGateway, '/connection': { ...toGateway, ws: true } } }
})
