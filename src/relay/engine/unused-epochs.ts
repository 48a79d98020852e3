const SHARES = 1 << 16

/**
 * The epochs of channels without a stream, which begin a stream with it. A fixed number, so that nothing is stored for a channel.
 * Once a stream has expired, the channels that share its epoch get a new one.
 */
export class UnusedEpochs {
  readonly #newEpoch: () => string
  readonly #epochs = new Map<number, string>()

  constructor(newEpoch: () => string) {
    this.#newEpoch = newEpoch
  }

  of(channel: string): string {
    const share = shareOf(channel)
    const known = this.#epochs.get(share)
    if (known !== undefined) return known
    const epoch = this.#newEpoch()
    this.#epochs.set(share, epoch)
    return epoch
  }

  /** The stream of the channel has expired. */
  expired(channel: string): void {
    this.#epochs.delete(shareOf(channel))
  }
}

const shareOf = (channel: string): number => {
  let hash = 0
  for (let index = 0; index < channel.length; index++) hash = Math.imul(hash, 31) + channel.charCodeAt(index)
  return (hash ^ (hash >>> 16)) & (SHARES - 1)
}
