// The gateway with the whole chain in production mode, with one log line per request.
await import('../../../src/gateway/main.js')
