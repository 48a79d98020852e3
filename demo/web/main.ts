import { createApp } from 'vue'
import App from './App.vue'
import { router } from './router.js'
import '../../src/ui/tokens.css'
import '../../src/ui/base.css'
import '../../src/ui/frame.css'
import './page.css'

const app = createApp(App).use(router)
// The first page is known before anything is shown: nothing has to make room for the menu.
void router.isReady().finally(() => app.mount('#app'))
