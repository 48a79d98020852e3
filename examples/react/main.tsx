import { createClient } from 'gatehouse-client'
import { GatehouseProvider } from 'gatehouse-client/react'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './App.js'

const root = document.querySelector('#root')
if (root === null) throw new Error('the page has no #root')
createRoot(root).render(
  <StrictMode>
    <GatehouseProvider client={createClient()}>
      <App />
    </GatehouseProvider>
  </StrictMode>
)
