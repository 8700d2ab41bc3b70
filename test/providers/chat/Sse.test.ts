import { makeSseReader, type SseEvent } from "../../../src/providers/chat/WireStream.ts"
import { assert, describe, it } from "../../harness/It.ts"

const bytes = (text: string) => new TextEncoder().encode(text)

const read = (chunks: ReadonlyArray<Uint8Array>) => {
  const events: Array<SseEvent> = []
  const sse = makeSseReader((event) => events.push(event))
  const fed = chunks.map((chunk) => sse.feed(chunk))
  sse.end()
  return { events, readable: !fed.includes(false) }
}

const data = (...all: ReadonlyArray<string>): ReadonlyArray<SseEvent> => all.map((data) => ({ event: undefined, data }))

const cases: ReadonlyArray<readonly [string, string, ReadonlyArray<SseEvent>]> = [
  ["LF", "data: a\n\ndata: b\n\n", data("a", "b")],
  ["CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", data("a", "b")],
  ["CR", "data: a\r\rdata: b\r\r", data("a", "b")],
  ["no space after the colon", "data:a\n\n", data("a")],
  ["one space is the field's, the next the text's", "data:  a\n\n", data(" a")],
  ["several data lines", "data: a\ndata: b\ndata:\n\n", data("a\nb\n")],
  ["comments and blank lines", ": keep-alive\n\n\n\n:\ndata: a\n: in between\n\n", data("a")],
  ["event names", "event: error\ndata: x\n\ndata: y\n\n", [{ event: "error", data: "x" }, ...data("y")]],
  ["ids, retries and unknown fields", "id: 1\nretry: 5\nodd: field\nodd\ndata: a\n\n", data("a")],
  ["a byte order mark", "\ufeffdata: a\n\n", data("a")],
  ["a mark anywhere else is text", "data: \ufeffa\n\n", data("\ufeffa")],
  ["a last event without a blank line", "data: a\n\ndata: b\n", data("a", "b")],
  ["a last event without a line's end", "data: a\n\ndata: b", data("a", "b")],
  ["code points of one to four bytes", "data: aé€👋\n\ndata: 你好\n\n", data("aé€👋", "你好")]
]

describe("Sse.reader", () => {
  for (const [name, text, expected] of cases) {
    it(`reads ${name}, wherever the bytes are cut`, () => {
      const whole = bytes(text)
      assert.deepStrictEqual(read([whole]).events, expected)
      assert.deepStrictEqual(read([...whole].map((byte) => Uint8Array.of(byte))).events, expected)
      for (let cut = 1; cut < whole.length; cut++) {
        assert.deepStrictEqual(read([whole.subarray(0, cut), whole.subarray(cut)]).events, expected, `cut at ${cut}`)
      }
    })
  }

  it("gives an event as soon as its blank line is there", () => {
    const events: Array<SseEvent> = []
    const sse = makeSseReader((event) => events.push(event))
    sse.feed(bytes("data: a\n"))
    assert.strictEqual(events.length, 0)
    sse.feed(bytes("\n"))
    assert.strictEqual(events.length, 1)
  })

  it("refuses an event that grows past its limit, in one line or in many", () => {
    const mebibyte = "x".repeat(1024 * 1024)
    const oneLine = ["data: ", ...Array.from({ length: 11 }, () => mebibyte), "\n\n"].map(bytes)
    const manyLines = Array.from({ length: 11 }, () => bytes(`data: ${mebibyte}\n`))
    assert.deepStrictEqual(read(oneLine), { events: [], readable: false })
    assert.deepStrictEqual(read(manyLines), { events: [], readable: false })
    const nine = ["data: ", ...Array.from({ length: 9 }, () => mebibyte), "\n\n"].map(bytes)
    assert.deepStrictEqual(read(nine), { events: data(mebibyte.repeat(9)), readable: true })
  })
})
