/** What a server says about itself. */
export interface ServerInfo {
  /** A new one every time the server is started. */
  readonly run: string
  readonly isCluster: boolean
  /** Why it cannot serve us; '' where it can. */
  readonly refusal: string
}

/** Of the text that INFO is answered with. */
export const serverInfo = (text: string): ServerInfo => {
  const fields = new Map(
    text.split('\r\n').map((line): [string, string] => {
      const [name = '', value = ''] = line.split(':', 2)
      return [name, value]
    })
  )
  return {
    run: fields.get('run_id') ?? '',
    isCluster: fields.get('redis_mode') === 'cluster' || fields.get('cluster_enabled') === '1',
    refusal:
      fields.get('loading') === '1'
        ? 'it is still loading its data'
        : fields.get('role') === 'slave'
          ? 'it is a replica, which takes no publications'
          : ''
  }
}
