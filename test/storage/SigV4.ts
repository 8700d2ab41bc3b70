import { createHash, createHmac, timingSafeEqual } from "node:crypto"

/** What a store of objects sees of a request before it believes anything. Lower-case header names. */
export interface SignedRequest {
  readonly method: string
  /** As sent, with the query. */
  readonly target: string
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: Uint8Array
}

export interface Account {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
  readonly region: string
}

export type Verdict =
  | "ok"
  | "AccessDenied"
  | "InvalidAccessKeyId"
  | "InvalidToken"
  | "RequestTimeTooSkewed"
  | "SignatureDoesNotMatch"

const hmac = (key: string | Uint8Array, text: string) => createHmac("sha256", key).update(text).digest()
const sha256 = (data: string | Uint8Array) => createHash("sha256").update(data).digest("hex")

const encode = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)

const canonicalPath = (path: string) =>
  path
    .split("/")
    .map((segment) => encode(decodeURIComponent(segment)))
    .join("/")

const canonicalQuery = (query: string) =>
  query
    .split("&")
    .filter((pair) => pair !== "")
    .map((pair) => {
      const [name = "", ...value] = pair.split("=")
      return [encode(decodeURIComponent(name)), encode(decodeURIComponent(value.join("=")))] as const
    })
    .toSorted(([one, first], [other, second]) => (one === other ? (first < second ? -1 : 1) : one < other ? -1 : 1))
    .map((pair) => pair.join("="))
    .join("&")

const authorization =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$/

/** Headers that must be signed where they are sent. */
const isBinding = (name: string) => name === "host" || name === "content-type" || name.startsWith("x-amz-")

const unixMillis = (date: string) =>
  Date.parse(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"))

/**
 * Judges a request as Amazon's "Signature Calculations for the Authorization Header" tells it, in one chunk, from
 * nothing but the specification. The hash is that of the body that came, whatever the request says of it.
 */
export const verify = (request: SignedRequest, account: Account, now: number): Verdict => {
  const { headers, method, target } = request
  const [, keyId, day, region, names = "", signature = ""] = authorization.exec(headers["authorization"] ?? "") ?? []
  if (keyId === undefined) return "AccessDenied"
  if (keyId !== account.accessKeyId) return "InvalidAccessKeyId"
  if (headers["x-amz-security-token"] !== account.sessionToken) return "InvalidToken"
  const date = headers["x-amz-date"] ?? ""
  if (!(Math.abs(now - unixMillis(date)) <= 15 * 60_000)) return "RequestTimeTooSkewed"
  const signed = names.split(";")
  const isComplete =
    region === account.region &&
    date.startsWith(day ?? "never") &&
    signed.includes("x-amz-content-sha256") &&
    Object.keys(headers).every((name) => !isBinding(name) || signed.includes(name))
  if (!isComplete) return "SignatureDoesNotMatch"

  const [path = "", query = ""] = target.split("?")
  const canonicalHeaders = signed.map((name) => `${name}:${(headers[name] ?? "").trim().replace(/ +/g, " ")}\n`)
  const hash = sha256(request.body)
  const canonical = [method, canonicalPath(path), canonicalQuery(query), canonicalHeaders.join(""), names, hash]
  const scope = `${day}/${region}/s3/aws4_request`
  const text = ["AWS4-HMAC-SHA256", date, scope, sha256(canonical.join("\n"))].join("\n")
  const key = [day ?? "", region ?? "", "s3", "aws4_request"].reduce<string | Uint8Array>(
    hmac,
    `AWS4${account.secretAccessKey}`
  )
  const expected = hmac(key, text)
  const isGenuine = headers["x-amz-content-sha256"] === hash && timingSafeEqual(expected, Buffer.from(signature, "hex"))
  return isGenuine ? "ok" : "SignatureDoesNotMatch"
}
