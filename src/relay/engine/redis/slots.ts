export const SLOTS = 16_384

const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  return crc
})

/** The slot of a hash tag, as every Redis Cluster computes it: CRC16 of its bytes. */
export const slotOfTag = (tag: string): number => {
  let crc = 0
  for (const byte of Buffer.from(tag)) crc = ((crc << 8) & 0xffff) ^ (TABLE[(crc >> 8) ^ byte] as number)
  return crc % SLOTS
}

/** What of a channel's tag counts: a brace in its name ends the tag early. */
export const channelTag = (channel: string): string => {
  const brace = channel.indexOf('}')
  return `:${brace === -1 ? channel : channel.slice(0, brace)}`
}
