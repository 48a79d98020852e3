import t from 'tap'
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { startGateway } from '/work/main/test/helper/gateway.ts'
const wait=(ms:number)=>new Promise(r=>setTimeout(r,ms))
t.test('x', async (t) => {
  const g = await startGateway(t, { env: { GATEWAY_MAX_IN_FLIGHT: '1', LOG_LEVEL:'trace' } })
  const plain = g.backend.answer
  for (const mode of ['before','during','upload']) {
    g.backend.answer = (q, s) => { if (mode==='during') s.write('x'.repeat(10)); s.once('close',()=>console.error(mode,'backend closed')); g.backend.server.emit('got', s) }
    const got = once(g.backend.server, mode==='upload'?'request':'got')
    const r = request(g.url + '/api/zones', { agent: false, method: mode==='upload'?'POST':'GET', headers: mode==='upload'?{cookie:'', 'content-length':'1000'}:{} })
    r.on('error', () => {})
    if (mode==='upload') { continue }
    r.end()
    await got
    if (mode==='during') { const [res]=await once(r,'response'); await once(res,'data') }
    r.destroy()
    await wait(200)
    g.backend.answer = plain
    console.error(mode, (await g.send('/api/zones')).status)
  }
  console.error(g.logs)
})
