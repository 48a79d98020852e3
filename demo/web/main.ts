import { createApp } from 'vue'
import App from './App.vue'
import { router } from './router.js'
import '../../src/ui/tokens.css'
import '../../src/ui/base.css'
import '../../src/ui/frame.css'
import './signs.css'

createApp(App).use(router).mount('#app')
