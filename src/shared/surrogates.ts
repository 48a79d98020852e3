// The two UTF-16 code units of a character above U+FFFF.

export const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff

export const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff
