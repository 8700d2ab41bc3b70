import { FastCheck as fc } from "effect"
import { gif, grown, png } from "../harness/fixtures/TinyMedia.ts"
import { filePart, formOf, formType, rawPart, textPart } from "../http/body/Forms.ts"
import { endpoints } from "./Bodies.ts"
import { mutated, odd } from "./Values.ts"

/** One request as its bytes. */
export interface Hostile {
  readonly what: string
  readonly method: string
  readonly target: string
  /** Without `Host`, `Content-Length` and `Connection`, which are the sender's unless named here. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>
  readonly body: Uint8Array
  /** How many bytes of the body are sent before the client leaves; undefined: all, and it waits for the answer. */
  readonly cutAt?: number
  /** How many bytes of the answer are read before the client leaves. */
  readonly leavesAt?: number
}

/** Replaced by the sender. */
export const secretMark = "$SECRET"

const key = ["authorization", `Bearer ${secretMark}`] as const
const json = ["content-type", "application/json"] as const
const endpoint = fc.constantFrom(...endpoints)
const valid = endpoint.chain(({ bodies, path }) => fc.constantFrom(...bodies).map((body) => ({ path, body })))
const post = { method: "POST", headers: [key, json] } as const
const bytes = (text: string) => Buffer.from(text)

const badJson = valid.chain(({ body, path }) =>
  mutated(body).map((text): Hostile => ({ what: "a mutated body", ...post, target: path, body: bytes(text) }))
)

const spoils = {
  cut: (whole: Buffer, at: number) => whole.subarray(0, at),
  flip: (whole: Buffer, at: number) =>
    Buffer.concat([whole.subarray(0, at), Buffer.from([at % 256]), whole.subarray(at + 1)]),
  twice: (whole: Buffer) => Buffer.concat([whole, whole]),
  bom: (whole: Buffer) => Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), whole]),
  utf16: (whole: Buffer) => Buffer.from(whole.toString(), "utf16le"),
  latin1: (whole: Buffer) => Buffer.from(whole.toString().replace("hi", "h\u00ef"), "latin1"),
  nul: (whole: Buffer) => Buffer.concat([whole, Buffer.alloc(8)]),
  trail: (whole: Buffer) => Buffer.concat([whole, Buffer.from(" x")]),
  invalid: (whole: Buffer, at: number) =>
    Buffer.concat([whole.subarray(0, at), Buffer.from([0xc3, 0x28, 0xff]), whole.subarray(at)])
}

/** The body's bytes cut short, changed, doubled, or in other encodings. */
const spoilt = fc
  .tuple(valid, fc.constantFrom(...Object.entries(spoils)), fc.nat())
  .map(([{ body, path }, [how, spoil], at]): Hostile => {
    const whole = bytes(JSON.stringify(body))
    return { what: `a body spoilt by ${how}`, ...post, target: path, body: spoil(whole, at % whole.length) }
  })

const words = [
  "v1",
  "chat",
  "completions",
  "images",
  "generations",
  "edits",
  "videos",
  "models",
  "credits",
  "content",
  "media",
  "public"
]
const segment = fc.oneof(
  fc.constantFrom(
    ...words,
    "vid_0",
    "..",
    ".",
    "%2e%2e",
    "%2f",
    "%00",
    "%",
    "%zz",
    "",
    "V1",
    "healthz",
    "metrics",
    "openapi.json"
  ),
  fc.webPath({ size: "small" }).map((text) => text.slice(1)),
  fc.constantFrom(200, 5_000, 20_000).map((length) => "a".repeat(length))
)
const query = fc.oneof(
  fc.constantFrom(
    "",
    "",
    "?",
    "?limit=1",
    "?limit=-1",
    "?limit=1e9",
    "?limit=x",
    "?limit=1&limit=2",
    "?a[b]=c",
    "?%00",
    "?limit=%zz"
  ),
  fc.webQueryParameters({ size: "small" }).map((text) => `?${text}`)
)
const method = fc.constantFrom(
  "GET",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "HEAD",
  "OPTIONS",
  "TRACE",
  "PROPFIND",
  "get",
  "M-SEARCH"
)
const paths = fc
  .tuple(method, fc.array(segment, { minLength: 1, maxLength: 5 }), query, fc.constantFrom("", "/", "//"), fc.boolean())
  .map(
    ([verb, segments, search, end, inApi]): Hostile => ({
      what: "an odd path",
      method: verb,
      target: `/${inApi ? "v1/" : ""}${segments.join("/")}${end}${search}`,
      headers: [key],
      body: Buffer.alloc(0)
    })
  )

const reads = fc
  .tuple(
    fc.constantFrom("/v1/models", "/v1/credits", "/v1/videos", "/v1/videos/vid_x", "/v1/videos/vid_x/content"),
    query
  )
  .map(
    ([path, search]): Hostile => ({
      what: "a read",
      method: "GET",
      target: path + search,
      headers: [key],
      body: Buffer.alloc(0)
    })
  )

const headerText = fc.oneof(
  fc.constantFrom(
    "",
    " ",
    "*",
    "a,b",
    "\u00e9",
    "\t",
    "x".repeat(9_000),
    "0",
    "-1",
    "1e3",
    "identity",
    "chunked",
    "gzip",
    "100-continue"
  ),
  fc.string({ maxLength: 20 }).map((text) => text.replaceAll(/[\r\n]/g, ""))
)
const header = fc.tuple(
  fc.constantFrom(
    "authorization",
    "x-api-key",
    "content-type",
    "content-encoding",
    "content-length",
    "transfer-encoding",
    "expect",
    "host",
    "accept",
    "accept-encoding",
    "x-request-id",
    "idempotency-key",
    "x-forwarded-for",
    "forwarded",
    "range",
    "if-none-match",
    "upgrade",
    "cookie",
    "origin",
    "x-odd"
  ),
  headerText
)
const forms = [
  "Bearer",
  `bearer ${secretMark}`,
  `Bearer  ${secretMark}`,
  `Basic ${secretMark}`,
  secretMark,
  "Bearer ggw_unknown",
  `Bearer ${secretMark},x`
]
const heads = fc
  .tuple(
    valid,
    fc.array(header, { minLength: 1, maxLength: 4 }),
    fc.option(fc.constantFrom(...forms), { nil: undefined })
  )
  .map(
    ([{ body, path }, extra, form]): Hostile => ({
      what: "odd headers",
      method: "POST",
      target: path,
      headers: [form === undefined ? key : (["authorization", form] as const), ...extra],
      body: bytes(JSON.stringify(body))
    })
  )

const contents = [png, gif, grown(30_000), Buffer.from("GIF89a"), Buffer.alloc(0), Buffer.from([0xff, 0xd8, 0xff])]
const part = fc.oneof(
  fc
    .tuple(fc.constantFrom("model", "prompt", "seconds", "resolution", "n", "x"), odd)
    .map(([name, value]) => textPart(name, value)),
  fc
    .tuple(fc.constantFrom("image", "image[]", "input_reference", "mask"), fc.constantFrom(...contents))
    .map(([name, value]) => filePart(name, value)),
  fc.constantFrom(
    rawPart("", "x"),
    rawPart("Content-Disposition: form-data", "x"),
    rawPart('Content-Disposition: form-data; name="model"\r\nContent-Transfer-Encoding: base64', "aTE=")
  )
)
const sound = [textPart("model", "si"), textPart("prompt", "a boat"), filePart("image", png)]
const types = {
  whole: formType(),
  cut: formType(),
  other: formType("other"),
  none: "multipart/form-data",
  long: formType("x".repeat(200))
}
const multipart = fc
  .tuple(
    fc.constantFrom("/v1/images/edits", "/v1/videos", "/v1/images/generations"),
    fc.array(part, { maxLength: 4 }),
    fc.constantFrom(...Object.entries(types)),
    fc.nat()
  )
  .map(([target, parts, [how, type], at]): Hostile => {
    const whole = formOf([...sound, ...parts])
    return {
      what: `a form, ${how}`,
      method: "POST",
      target,
      headers: [key, ["content-type", type]],
      body: how === "cut" ? whole.subarray(0, at % whole.length) : whole
    }
  })

/** Clients that leave: in the middle of their body, or of the answer. */
const departures = fc.tuple(valid, fc.nat(400), fc.boolean()).map(([{ body, path }, at, early]): Hostile => {
  const whole = bytes(JSON.stringify(body))
  return {
    what: early ? "a body that ends early" : "a client that leaves",
    ...post,
    target: path,
    body: whole,
    ...(early ? { cutAt: at % whole.length } : { leavesAt: at })
  }
})

const good = valid.map(
  ({ body, path }): Hostile => ({ what: "a good request", ...post, target: path, body: bytes(JSON.stringify(body)) })
)

/** Generated requests of every kind. */
export const hostile: fc.Arbitrary<Hostile> = fc.oneof(
  { weight: 45, arbitrary: badJson },
  { weight: 10, arbitrary: spoilt },
  { weight: 10, arbitrary: paths },
  { weight: 4, arbitrary: reads },
  { weight: 12, arbitrary: heads },
  { weight: 10, arbitrary: multipart },
  { weight: 6, arbitrary: departures },
  { weight: 3, arbitrary: good }
)
