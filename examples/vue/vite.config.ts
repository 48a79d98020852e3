import vue from '@vitejs/plugin-vue'
import { defineConfig } from 'vite'

// `gatehouse dev --web` sets both.
const { GATEWAY_URL = 'http://localhost:3000', WEB_PORT = '5173' } = process.env

// The gateway compares Origin with Host, so Host must stay the address of the development server.
const toGateway = { target: GATEWAY_URL, changeOrigin: false }

export default defineConfig({
  plugins: [vue()],
  server: {
    port: Number(WEB_PORT),
    proxy: { '/api': toGateway, '/auth/oidc': toGateway, '/connection': { ...toGateway, ws: true } }
  }
})
