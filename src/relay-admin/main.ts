import { createApp } from 'vue'
import App from './App.vue'
import '../ui/tokens.css'
import '../ui/base.css'
import '../ui/boxes.css'
import '../ui/modifiers.css'
import '../ui/frame.css'
import './admin.css'
import 'uplot/dist/uPlot.min.css'

createApp(App).mount('#app')
