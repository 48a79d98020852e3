const ENTRIES = 17

/** A publication of a busy floor: 2.5 KB of positions. */
export const positionBatch = (): string =>
  JSON.stringify({
    type: 'position-batch',
    data: Array.from({ length: ENTRIES }, (_, index) => ({
      transmitterId: `tx-${1000 + index}`,
      position: { x: 12.25 + index, y: 7.5 + index / 4 },
      positionMethod: 'trilateration',
      floorId: 'floor-7',
      accuracy: 1.5,
      timestamp: 1763200000000 + index
    }))
  })
