/** Writes the bits of an H.264 unit into memory of a size known beforehand. */
export interface Bits {
  /** An unsigned number of so many bits, at most 24. */
  readonly put: (value: number, width: number) => void
  /** An unsigned number, Exp-Golomb coded. */
  readonly golomb: (value: number) => void
  /** Whole bytes, from the next byte on. */
  readonly bytes: (value: Uint8Array) => void
  /** Ends the unit: a one, then zeros to the end of the byte. */
  readonly end: () => Buffer
}

export const make = (mostBytes: number): Bits => {
  const memory = Buffer.alloc(mostBytes)
  let bit = 0
  const put = (value: number, width: number): void => {
    for (let at = width - 1; at >= 0; at--, bit++) {
      if (((value >>> at) & 1) === 1) memory[bit >> 3] = (memory[bit >> 3] ?? 0) | (0x80 >> (bit & 7))
    }
  }
  return {
    put,
    golomb: (value) => {
      const width = 32 - Math.clz32(value + 1)
      put(0, width - 1)
      put(value + 1, width)
    },
    bytes: (value) => {
      const start = Math.ceil(bit / 8)
      memory.set(value, start)
      bit = 8 * (start + value.length)
    },
    end: () => {
      put(1, 1)
      return memory.subarray(0, Math.ceil(bit / 8))
    }
  }
}
