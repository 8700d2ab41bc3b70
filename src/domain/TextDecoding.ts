import { Either } from "effect"

const marks = [
  { encoding: "utf-8", bytes: [0xef, 0xbb, 0xbf] },
  { encoding: "utf-16le", bytes: [0xff, 0xfe] },
  { encoding: "utf-16be", bytes: [0xfe, 0xff] }
] as const

const maxMarkLength = 3

type Decoder = InstanceType<typeof TextDecoder>

const encodingOf = (start: Uint8Array): string =>
  marks.find(({ bytes }) => bytes.every((byte, index) => start[index] === byte))?.encoding ?? "utf-8"

const containsNul = "it contains NUL characters: save it as UTF-8"

/**
 * Decodes a text file in pieces: UTF-8, or UTF-16 with a byte order mark as Windows saves it. Drops the mark. Invalid
 * bytes become U+FFFD. Fails with a reason for other encodings.
 */
export class TextFileDecoder {
  #start = new Uint8Array(0)
  #decoder: Decoder | undefined

  decode(bytes: Uint8Array): Either.Either<string, string> {
    if (this.#decoder !== undefined) return this.#textOf(this.#decoder, bytes, true)
    this.#start = Buffer.concat([this.#start, bytes])
    return this.#start.length < maxMarkLength ? Either.right("") : this.#begin(true)
  }

  /** Returns the remaining text after the last piece. */
  end(): Either.Either<string, string> {
    return this.#decoder === undefined ? this.#begin(false) : this.#textOf(this.#decoder, new Uint8Array(0), false)
  }

  #begin(stream: boolean): Either.Either<string, string> {
    this.#decoder = new TextDecoder(encodingOf(this.#start))
    return this.#textOf(this.#decoder, this.#start, stream)
  }

  #textOf(decoder: Decoder, bytes: Uint8Array, stream: boolean): Either.Either<string, string> {
    const text = decoder.decode(bytes, { stream })
    return text.includes("\0") ? Either.left(containsNul) : Either.right(text)
  }
}

/** Decodes a complete file as `TextFileDecoder` does. */
export const decodeTextFile = (bytes: Uint8Array): Either.Either<string, string> => {
  const decoder = new TextFileDecoder()
  return Either.flatMap(decoder.decode(bytes), (text) => Either.map(decoder.end(), (rest) => text + rest))
}

/**
 * Returns a problem if the value is in quotes, because Docker and Kubernetes do not remove them. Completes a sentence about
 * the variable.
 */
export const findQuotes = (value: string): string | undefined =>
  /^(["'`]).*\1$/s.test(value) ? "has quotes around it, which are part of the value: remove them" : undefined
