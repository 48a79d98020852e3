import { provideClient } from 'gatehouse-client/vue'
import { createApp } from 'vue'
import App from './App.vue'
import { router } from './router.js'
import { client } from './services.js'
import '../../src/ui/styles.css'
import './page.css'

const app = createApp(App).use(router)
provideClient(client, { app })
// Mounts after the first navigation, so that the layout does not shift when the menu appears.
void router
  .isReady()
  // The router navigates again.
  .catch(() => undefined)
  .then(() => app.mount('#app'))
