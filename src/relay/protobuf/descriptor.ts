// Written by `npm run protocol` from protocol.proto, not by hand.
export const descriptor = {
  nested: {
    Command: {
      fields: {
        id: { type: 'uint32', id: 1 },
        connect: { type: 'ConnectRequest', id: 4 },
        subscribe: { type: 'SubscribeRequest', id: 5 },
        unsubscribe: { type: 'UnsubscribeRequest', id: 6 },
        publish: { type: 'PublishRequest', id: 7 },
        presence: { type: 'PresenceRequest', id: 8 },
        presence_stats: { type: 'PresenceStatsRequest', id: 9 },
        history: { type: 'HistoryRequest', id: 10 },
        send: { type: 'SendRequest', id: 12 },
        rpc: { type: 'RPCRequest', id: 13 },
        refresh: { type: 'RefreshRequest', id: 14 },
        sub_refresh: { type: 'SubRefreshRequest', id: 15 }
      }
    },
    ConnectRequest: {
      fields: {
        token: { type: 'string', id: 1 },
        data: { type: 'bytes', id: 2 },
        subs: { keyType: 'string', type: 'SubscribeRequest', id: 3 },
        name: { type: 'string', id: 4 },
        version: { type: 'string', id: 5 },
        headers: { keyType: 'string', type: 'string', id: 6 }
      }
    },
    SubscribeRequest: {
      fields: {
        channel: { type: 'string', id: 1 },
        token: { type: 'string', id: 2 },
        recover: { type: 'bool', id: 3 },
        epoch: { type: 'string', id: 6 },
        offset: { type: 'uint64', id: 7 },
        data: { type: 'bytes', id: 8 },
        positioned: { type: 'bool', id: 9 },
        recoverable: { type: 'bool', id: 10 },
        join_leave: { type: 'bool', id: 11 },
        delta: { type: 'string', id: 12 },
        tf: { type: 'FilterNode', id: 13 },
        flag: { type: 'int64', id: 14 },
        type: { type: 'int32', id: 15 },
        phase: { type: 'int32', id: 16 },
        cursor: { type: 'string', id: 17 },
        limit: { type: 'int32', id: 18 }
      }
    },
    FilterNode: {
      fields: {
        op: { type: 'string', id: 1 },
        key: { type: 'string', id: 2 },
        cmp: { type: 'string', id: 3 },
        val: { type: 'string', id: 4 },
        vals: { rule: 'repeated', type: 'string', id: 5 },
        nodes: { rule: 'repeated', type: 'FilterNode', id: 6 }
      }
    },
    UnsubscribeRequest: { fields: { channel: { type: 'string', id: 1 } } },
    PublishRequest: {
      fields: {
        channel: { type: 'string', id: 1 },
        data: { type: 'bytes', id: 2 },
        type: { type: 'int32', id: 3 },
        key: { type: 'string', id: 4 },
        removed: { type: 'bool', id: 5 }
      }
    },
    PresenceRequest: { fields: { channel: { type: 'string', id: 1 } } },
    PresenceStatsRequest: { fields: { channel: { type: 'string', id: 1 } } },
    HistoryRequest: {
      fields: {
        channel: { type: 'string', id: 1 },
        limit: { type: 'int32', id: 7 },
        since: { type: 'StreamPosition', id: 8 },
        reverse: { type: 'bool', id: 9 }
      }
    },
    StreamPosition: { fields: { offset: { type: 'uint64', id: 1 }, epoch: { type: 'string', id: 2 } } },
    SendRequest: { fields: {} },
    RPCRequest: { fields: { data: { type: 'bytes', id: 1 }, method: { type: 'string', id: 2 } } },
    RefreshRequest: { fields: { token: { type: 'string', id: 1 } } },
    SubRefreshRequest: { fields: { channel: { type: 'string', id: 1 }, token: { type: 'string', id: 2 } } },
    EmulationRequest: {
      fields: { node: { type: 'string', id: 1 }, session: { type: 'string', id: 2 }, data: { type: 'bytes', id: 3 } }
    },
    Reply: {
      fields: {
        id: { type: 'uint32', id: 1 },
        error: { type: 'Error', id: 2 },
        push: { type: 'Push', id: 4 },
        connect: { type: 'ConnectResult', id: 5 },
        subscribe: { type: 'SubscribeResult', id: 6 },
        unsubscribe: { type: 'UnsubscribeResult', id: 7 },
        publish: { type: 'PublishResult', id: 8 },
        presence: { type: 'PresenceResult', id: 9 },
        presence_stats: { type: 'PresenceStatsResult', id: 10 },
        history: { type: 'HistoryResult', id: 11 },
        rpc: { type: 'RPCResult', id: 13 },
        refresh: { type: 'RefreshResult', id: 14 },
        sub_refresh: { type: 'SubRefreshResult', id: 15 }
      }
    },
    Error: {
      fields: {
        code: { type: 'uint32', id: 1 },
        message: { type: 'string', id: 2 },
        temporary: { type: 'bool', id: 3 }
      }
    },
    ConnectResult: {
      fields: {
        client: { type: 'string', id: 1 },
        version: { type: 'string', id: 2 },
        expires: { type: 'bool', id: 3 },
        ttl: { type: 'uint32', id: 4 },
        data: { type: 'bytes', id: 5 },
        subs: { keyType: 'string', type: 'SubscribeResult', id: 6 },
        ping: { type: 'uint32', id: 7 },
        pong: { type: 'bool', id: 8 },
        session: { type: 'string', id: 9 },
        node: { type: 'string', id: 10 },
        time: { type: 'int64', id: 11 }
      }
    },
    SubscribeResult: {
      fields: {
        expires: { type: 'bool', id: 1 },
        ttl: { type: 'uint32', id: 2 },
        recoverable: { type: 'bool', id: 3 },
        epoch: { type: 'string', id: 6 },
        publications: { rule: 'repeated', type: 'Publication', id: 7 },
        recovered: { type: 'bool', id: 8 },
        offset: { type: 'uint64', id: 9 },
        positioned: { type: 'bool', id: 10 },
        data: { type: 'bytes', id: 11 },
        was_recovering: { type: 'bool', id: 12 },
        delta: { type: 'bool', id: 13 },
        type: { type: 'int32', id: 15 },
        phase: { type: 'int32', id: 16 },
        cursor: { type: 'string', id: 17 },
        state: { rule: 'repeated', type: 'Publication', id: 18 }
      }
    },
    UnsubscribeResult: { fields: {} },
    PublishResult: { fields: {} },
    PresenceResult: { fields: { presence: { keyType: 'string', type: 'ClientInfo', id: 1 } } },
    PresenceStatsResult: { fields: { num_clients: { type: 'uint32', id: 1 }, num_users: { type: 'uint32', id: 2 } } },
    HistoryResult: {
      fields: {
        publications: { rule: 'repeated', type: 'Publication', id: 1 },
        epoch: { type: 'string', id: 2 },
        offset: { type: 'uint64', id: 3 }
      }
    },
    RPCResult: { fields: { data: { type: 'bytes', id: 1 } } },
    RefreshResult: {
      fields: {
        client: { type: 'string', id: 1 },
        version: { type: 'string', id: 2 },
        expires: { type: 'bool', id: 3 },
        ttl: { type: 'uint32', id: 4 }
      }
    },
    SubRefreshResult: { fields: { expires: { type: 'bool', id: 1 }, ttl: { type: 'uint32', id: 2 } } },
    ClientInfo: {
      fields: {
        user: { type: 'string', id: 1 },
        client: { type: 'string', id: 2 },
        conn_info: { type: 'bytes', id: 3 },
        chan_info: { type: 'bytes', id: 4 }
      }
    },
    Publication: {
      fields: {
        data: { type: 'bytes', id: 4 },
        info: { type: 'ClientInfo', id: 5 },
        offset: { type: 'uint64', id: 6 },
        tags: { keyType: 'string', type: 'string', id: 7 },
        delta: { type: 'bool', id: 8 },
        key: { type: 'string', id: 11 },
        removed: { type: 'bool', id: 12 },
        epoch: { type: 'string', id: 14 },
        version: { type: 'uint64', id: 16 }
      }
    },
    Push: {
      fields: {
        channel: { type: 'string', id: 2 },
        pub: { type: 'Publication', id: 4 },
        join: { type: 'Join', id: 5 },
        leave: { type: 'Leave', id: 6 },
        unsubscribe: { type: 'Unsubscribe', id: 7 },
        subscribe: { type: 'Subscribe', id: 9 },
        disconnect: { type: 'Disconnect', id: 11 },
        refresh: { type: 'Refresh', id: 12 }
      }
    },
    Join: { fields: { info: { type: 'ClientInfo', id: 1 } } },
    Leave: { fields: { info: { type: 'ClientInfo', id: 1 } } },
    Unsubscribe: { fields: { code: { type: 'uint32', id: 2 }, reason: { type: 'string', id: 3 } } },
    Subscribe: {
      fields: {
        recoverable: { type: 'bool', id: 1 },
        epoch: { type: 'string', id: 4 },
        offset: { type: 'uint64', id: 5 },
        positioned: { type: 'bool', id: 6 },
        data: { type: 'bytes', id: 7 }
      }
    },
    Disconnect: { fields: { code: { type: 'uint32', id: 1 }, reason: { type: 'string', id: 2 } } },
    Refresh: { fields: { expires: { type: 'bool', id: 1 }, ttl: { type: 'uint32', id: 2 } } }
  }
}
