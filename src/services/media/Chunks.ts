import { base64Length, base64Pieces } from "./Base64.ts"

/** Made lazily: a large body never exists twice. */
export interface Chunks {
  readonly length: number
  readonly [Symbol.iterator]: () => IterableIterator<Uint8Array>
}

export const chunksOf = (parts: ReadonlyArray<Uint8Array>): Chunks => ({
  length: parts.reduce((sum, part) => sum + part.length, 0),
  [Symbol.iterator]: () => parts[Symbol.iterator]()
})

/** Written into JSON as base64, after a prefix such as that of a `data:` URL. */
export class Encoded {
  readonly bytes: Uint8Array
  readonly prefix: string

  constructor(bytes: Uint8Array, prefix = "") {
    this.bytes = bytes
    this.prefix = prefix
  }
}

/** Writes each `Encoded` lazily; `mark` must be unguessable, so that it does not occur in the value. */
export const jsonChunks = (value: unknown, mark: string): Chunks => {
  const encoded: Array<Uint8Array> = []
  const text = JSON.stringify(value, (_, field: unknown) => {
    if (!(field instanceof Encoded)) return field
    encoded.push(field.bytes)
    return field.prefix + mark
  })
  const parts = text.split(mark).map((part) => Buffer.from(part))
  if (parts.length !== encoded.length + 1) throw new Error("the mark occurs in the value")
  return {
    length: encoded.reduce((sum, bytes) => sum + base64Length(bytes.length), chunksOf(parts).length),
    *[Symbol.iterator]() {
      for (const [at, part] of parts.entries()) {
        yield part
        const bytes = encoded[at]
        if (bytes !== undefined) yield* base64Pieces(bytes)
      }
    }
  }
}
