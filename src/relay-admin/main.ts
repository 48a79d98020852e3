import { createApp } from 'vue'
import App from './App.vue'
import '../ui/styles.css'
import './admin.css'
import 'uplot/dist/uPlot.min.css'

createApp(App).mount('#app')
