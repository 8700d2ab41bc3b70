import { FastCheck as fc } from "effect"
import { type Hostile, secretMark } from "./Requests.ts"

/** Pieces of JSON that cost far more than their bytes, each to be repeated. */
const pieces = [
  { name: "empty objects", open: "[", unit: "{},", close: "{}]" },
  { name: "numbers", open: "[", unit: "0,", close: "0]" },
  { name: "a nest", open: "", unit: "[", close: "" },
  { name: "text of escapes", open: '"', unit: "\\u0041", close: '"' },
  { name: "wrapped base64", open: '"data:image/png;base64,', unit: `${"A".repeat(76)}\\r\\n`, close: '"' }
] as const

const keys = (count: number, isInteger: boolean) =>
  `{${Array.from({ length: count }, (_, index) => `"${isInteger ? "" : "k"}${index}":0`).join(",")}}`

const filled = fc
  .tuple(fc.constantFrom(...pieces), fc.constantFrom(5, 15, 29))
  .map(([{ close, name, open, unit }, mebibytes]) => ({
    name: `${mebibytes} MiB of ${name}`,
    json: open + unit.repeat(Math.floor((mebibytes * 2 ** 20) / unit.length)) + close
  }))
const keyed = fc.tuple(fc.constantFrom(500_000, 2_000_000), fc.boolean()).map(([count, isInteger]) => ({
  name: `${count} ${isInteger ? "integer-like " : ""}keys`,
  json: keys(count, isInteger)
}))

const places = [
  { path: "/v1/chat/completions", around: ['{"model":"m1","messages":[{"role":"user","content":"hi"}],"x":', "}"] },
  { path: "/v1/chat/completions", around: ['{"model":"m1","messages":', "}"] },
  {
    path: "/v1/chat/completions",
    around: [
      '{"model":"s1","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","x":',
      "}}}]}"
    ]
  },
  { path: "/v1/images/generations", around: ['{"model":"si","prompt":"a","image":', "}"] },
  { path: "/v1/videos", around: ['{"model":"v1","prompt":"a","image":', "}"] }
] as const

/** Bodies near the limit that are costly to read, for the neighbour to notice. */
export const heavy: fc.Arbitrary<Hostile> = fc
  .tuple(fc.constantFrom(...places), fc.oneof({ weight: 3, arbitrary: filled }, { weight: 1, arbitrary: keyed }))
  .map(([{ around, path }, { json, name }]) => ({
    what: name,
    method: "POST",
    target: path,
    headers: [
      ["authorization", `Bearer ${secretMark}`],
      ["content-type", "application/json"]
    ],
    body: Buffer.from(`${around[0]}${json}${around[1]}`)
  }))
