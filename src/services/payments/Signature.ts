import { createHmac, timingSafeEqual } from "node:crypto"

/** Of its time and ours, either way. */
const toleranceSeconds = 300

/** The time and the signatures of a header `t=…,v1=…,v1=…`; undefined where it is none. */
const parse = (header: string): { readonly time: string; readonly signatures: ReadonlyArray<string> } | undefined => {
  const parts = header.split(",").map((part) => part.trim().split("=", 2))
  const valuesOf = (wanted: string) => parts.flatMap(([name, value]) => (name === wanted && value ? [value] : []))
  const [time, ...others] = valuesOf("t")
  return time === undefined || others.length > 0 || !/^\d{1,12}$/.test(time)
    ? undefined
    : { time, signatures: valuesOf("v1") }
}

const isDigest = (text: string): boolean => /^[0-9a-f]{64}$/.test(text)

/** Whether a header has the form of a signature. The body of any other request is not received. */
export const isSignature = (header: string | undefined): header is string =>
  header !== undefined && (parse(header)?.signatures.some(isDigest) ?? false)

const isSame = (given: string, expected: Buffer): boolean =>
  isDigest(given) && timingSafeEqual(Buffer.from(given, "hex"), expected)

/** Whether the header signs these bytes now, `now` in Unix milliseconds; an empty secret signs nothing. */
export const isSigned = (secret: string, header: string, body: Uint8Array, now: number): boolean => {
  const parsed = parse(header)
  if (secret === "" || parsed === undefined) return false
  if (Math.abs(now / 1000 - Number(parsed.time)) > toleranceSeconds) return false
  const expected = createHmac("sha256", secret).update(`${parsed.time}.`).update(body).digest()
  return parsed.signatures.some((signature) => isSame(signature, expected))
}
