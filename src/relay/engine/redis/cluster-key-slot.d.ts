// The package comes without types. A Buffer is hashed as it is; a string is encoded as UTF-8 first.
declare module 'cluster-key-slot' {
  const keySlot: (key: string | Buffer) => number
  export = keySlot
}
