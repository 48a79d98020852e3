// The gateway as it ships: the whole chain, production rules, one log line per request.
await import('../../../src/gateway/main.js')
