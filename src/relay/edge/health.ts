import { answer, JSON_TYPE } from './http-answer.js'
import type { HttpRoute } from './http-stream.js'

/** 200 while clients can be served; load balancers send them elsewhere otherwise. */
export const health =
  (isServing: () => boolean): HttpRoute =>
  (request, response) => {
    request.resume()
    if (request.method !== 'GET' && request.method !== 'HEAD') answer(response, 405, '', ['Allow', 'GET, HEAD'])
    else if (isServing()) answer(response, 200, '{"status":"ok"}', [...JSON_TYPE, 'Cache-Control', 'no-store'])
    else answer(response, 503, '{"status":"unavailable"}', [...JSON_TYPE, 'Cache-Control', 'no-store'])
  }
