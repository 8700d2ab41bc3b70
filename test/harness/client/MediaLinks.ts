import { Effect } from "effect"
import { assert } from "../It.ts"

const get = (url: string, headers: Readonly<Record<string, string>> = {}, method = "GET") =>
  Effect.promise(async () => {
    const response = await fetch(url, { headers, method })
    return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) }
  })

/** A link without a key leads to these bytes, whole and in parts, with all that lets it be kept and shown safely. */
export const assertLinked = Effect.fnUntraced(function* (url: string, bytes: Uint8Array, type = "image/png") {
  assert.match(url, /\/media\/public\/[A-Za-z0-9_-]{32}\.(png|jpg|webp|gif|mp4)$/)
  const whole = yield* get(url)
  assert.strictEqual(whole.status, 200)
  assert.isTrue(whole.bytes.equals(bytes), "other bytes")
  const told = {
    "content-type": type,
    "cache-control": "public, max-age=31536000, immutable",
    "x-content-type-options": "nosniff",
    "content-security-policy": "sandbox; default-src 'none'",
    "accept-ranges": "bytes"
  }
  const assertTold = (headers: Headers) => {
    for (const [name, value] of Object.entries(told)) assert.strictEqual(headers.get(name), value, name)
  }
  assertTold(whole.headers)
  assert.strictEqual(whole.headers.get("content-length"), String(bytes.length))
  const etag = whole.headers.get("etag") ?? ""
  assert.match(etag, /^"[^"]+"$/)

  const head = yield* get(url, {}, "HEAD")
  assert.deepStrictEqual([head.status, head.bytes.length], [200, 0])
  assertTold(head.headers)
  assert.strictEqual(head.headers.get("content-length"), String(bytes.length))

  const part = yield* get(url, { range: "bytes=2-9" })
  assert.strictEqual(part.status, 206)
  assertTold(part.headers)
  assert.strictEqual(part.headers.get("content-range"), `bytes 2-9/${bytes.length}`)
  assert.isTrue(part.bytes.equals(bytes.subarray(2, 10)), "another part")
  const beyond = yield* get(url, { range: `bytes=${bytes.length}-` })
  assert.deepStrictEqual([beyond.status, beyond.headers.get("content-range")], [416, `bytes */${bytes.length}`])

  // Left alone, fetch would say `no-cache` beside a condition of the caller's.
  const known = yield* get(url, { "if-none-match": etag, "cache-control": "max-age=0" })
  assert.deepStrictEqual([known.status, known.bytes.length], [304, 0])
})
