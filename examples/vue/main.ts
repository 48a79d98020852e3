import { createClient } from 'gatehouse-client'
import { provideClient } from 'gatehouse-client/vue'
import { createApp } from 'vue'
import App from './App.vue'

const app = createApp(App)
provideClient(createClient(), { app })
app.mount('#app')
