import { createHash } from "node:crypto"
import { Schema } from "effect"

/*
 * Before compression: a line of JSON with the header, then for each table a line of JSON, its rows as PostgreSQL's COPY
 * writes them as text, and a line `\.`; last a line of JSON with the counts and the SHA-256 of all before it.
 */

export const Header = Schema.Struct({
  format: Schema.Literal("generation-gateway backup"),
  version: Schema.Literal(1),
  created_at: Schema.String,
  migrations: Schema.Array(Schema.Struct({ id: Schema.Int, name: Schema.String, checksum: Schema.String }))
})
export type Header = typeof Header.Type

export const Table = Schema.Struct({ table: Schema.String, columns: Schema.Array(Schema.String) })
export type Table = typeof Table.Type

export const End = Schema.Struct({
  rows: Schema.Record({ key: Schema.String, value: Schema.Number }),
  sha256: Schema.String
})
export type End = typeof End.Type

export const endOfRows = "\\.\n"
const marker = Buffer.from(endOfRows)
const markerInside = Buffer.from(`\n${endOfRows}`)
const newline = 0x0a

export class Damaged extends Error {}

const longestLine = 4 * 1024 * 1024

/** Reads a container front to back; hashes what was read before the last `line`. */
export class ContainerReader {
  readonly #chunks: AsyncIterator<Buffer>
  readonly #hash = createHash("sha256")
  #rest = Buffer.alloc(0)
  #unhashed = Buffer.alloc(0)

  constructor(chunks: AsyncIterable<Buffer>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  async #more(): Promise<boolean> {
    const next = await this.#chunks.next()
    if (next.done === true) return false
    this.#rest = Buffer.concat([this.#rest, next.value])
    return true
  }

  #take(bytes: number): Buffer {
    const taken = this.#rest.subarray(0, bytes)
    this.#rest = this.#rest.subarray(bytes)
    this.#hash.update(this.#unhashed)
    this.#unhashed = taken
    return taken
  }

  async line(): Promise<unknown> {
    let end = this.#rest.indexOf(newline)
    while (end < 0) {
      if (this.#rest.length > longestLine || !(await this.#more())) throw new Damaged("it ends too early")
      end = this.#rest.indexOf(newline)
    }
    const text = this.#take(end + 1).toString("utf8")
    try {
      return JSON.parse(text)
    } catch {
      throw new Damaged("a line of it is no JSON")
    }
  }

  /** The rows of a table, in whole lines. */
  async *rows(): AsyncGenerator<Buffer> {
    while (true) {
      if (this.#rest.subarray(0, marker.length).equals(marker)) {
        this.#take(marker.length)
        return
      }
      const inside = this.#rest.indexOf(markerInside)
      const lines = (inside < 0 ? this.#rest.lastIndexOf(newline) : inside) + 1
      // What begins a marker may be the end of this chunk.
      if (lines > 0) yield this.#take(lines)
      else if (!(await this.#more())) throw new Damaged("it ends too early")
    }
  }

  /** Returns the hash of all lines before the last; fails with Damaged where something follows it. */
  async finish(): Promise<string> {
    if (this.#rest.length > 0 || (await this.#more())) throw new Damaged("something follows its end")
    return this.#hash.digest("hex")
  }
}
