/** Clients may only receive. Publications that are missed during a short disconnect are recovered. */
const RECEIVE_ONLY = {
  publication_data_format: 'json',
  history_size: 100,
  history_ttl: '60s',
  force_recovery: true,
  force_positioning: true
}

/**
 * The relay's configuration for the demo: as without a file, but the backend decides about subscriptions to floors, is told
 * which floors are watched, and serves the calls of clients.
 */
export const relayConfigOf = (backendUrl: string): object => {
  const proxy = (event: string) => ({
    endpoint: `${backendUrl}/relay/${event}`,
    // The embedded database blocks the backend for seconds when it starts.
    timeout: '10s'
  })
  return {
    channel: {
      proxy: { subscribe: proxy('subscribe'), state: proxy('state') },
      namespaces: [
        {
          name: 'floor',
          ...RECEIVE_ONLY,
          conflate: 'data[].transmitterId',
          entry_time: 'timestamp',
          snapshot: true,
          view_x: 'position.x',
          view_y: 'position.y',
          // In metres.
          view_cell: 5,
          presence: true,
          subscribe_proxy_enabled: true,
          state_proxy_enabled: true
        },
        { name: 'global', ...RECEIVE_ONLY, allow_subscribe_for_client: true }
      ]
    },
    rpc: { proxy: proxy('rpc'), without_namespace: { proxy_enabled: true } }
  }
}
