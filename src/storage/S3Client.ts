// Not the AWS SDK, which would save some 200 lines but add 22 MB, and 80 ms to every start. aws4fetch only signs requests.

import { webcrypto } from "node:crypto"
import { AwsV4Signer } from "aws4fetch"
import { Clock, Data, Duration, Effect, Redacted, Schedule } from "effect"
import { type Dispatcher, request as send } from "undici"
import { abortAfter, makeAgent, readAnswerBody } from "../node/Outgoing.ts"
import { Reloads } from "../services/control/ControlFollower.ts"
import { maxReadBytes } from "../services/media/MediaStore.ts"
import { retries } from "../services/runtime/Schedules.ts"
import { errorCode } from "../services/runtime/System.ts"

export interface S3Credentials {
  readonly accessKeyId: Redacted.Redacted
  readonly secretAccessKey: Redacted.Redacted
  readonly sessionToken: Redacted.Redacted | undefined
}

export interface S3Options extends S3Credentials {
  readonly bucket: string
  readonly endpoint: string | undefined
  readonly region: string
  /** The base URL of links, without a trailing slash. */
  readonly publicUrl: string
}

export interface S3Timeouts {
  readonly request: Duration.DurationInput
  /** The pause before the second attempt. Doubles with each further attempt. */
  readonly pause: Duration.DurationInput
}

interface S3Request {
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE"
  readonly key: string
  readonly query?: Readonly<Record<string, string>>
  /** Names must be lower-case. All headers are signed. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array
}

interface S3Answer {
  readonly header: (name: string) => string | undefined
  readonly body: Buffer
}

/** If `status` is undefined, there was no response, and the store may have executed the request. */
export class S3Failed extends Data.TaggedError("S3Failed")<{
  readonly detail: string
  readonly status: number | undefined
  readonly code: string | undefined
  readonly isTransient: boolean
}> {}

const maxAttempts = 4
const detailLimit = 300
const connectMillis = 5_000

export const addressOf = ({ bucket, endpoint, region }: Pick<S3Options, "bucket" | "endpoint" | "region">): string => {
  if (endpoint !== undefined) return `${endpoint}/${bucket}`
  // A path and not a subdomain, because AWS's certificates do not cover bucket names with dots.
  if (bucket.includes(".")) return `https://s3.${region}.amazonaws.com/${bucket}`
  return `https://${bucket}.s3.${region}.amazonaws.com`
}

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" }

const unescape = (text: string) =>
  text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w+));/gi, (whole, decimal, hex, name) => {
    const code = decimal === undefined ? Number.parseInt(hex ?? "", 16) : Number(decimal)
    return code <= 0x10ffff ? String.fromCodePoint(code) : (entities[name] ?? whole)
  })

/** Returns the text of an XML element. A regular expression is enough, because S3's documents are flat. */
export const elementOf = (xml: string, name: string): string | undefined => {
  const text = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1]
  return text === undefined ? undefined : unescape(text)
}

const hexOfSha256 = async (body: Uint8Array) =>
  Buffer.from(await webcrypto.subtle.digest("SHA-256", body)).toString("hex")

const collect = async (body: Dispatcher.ResponseData["body"]): Promise<Buffer> => {
  const bytes = await readAnswerBody(body, maxReadBytes)
  if (bytes === undefined) throw new Error(`the response is larger than ${maxReadBytes} bytes`)
  return bytes
}

const isTransientError = (status: number, code: string | undefined) =>
  status >= 500 || status === 429 || status === 408 || code === "RequestTimeout"

/**
 * Returns whether the store may have rejected the credentials. Includes missing permissions, because without an error
 * code, as for HEAD, they look the same as an expired token.
 */
const isDenied = ({ status }: S3Failed) => status === 400 || status === 401 || status === 403

const reveal = ({ accessKeyId, secretAccessKey, sessionToken }: S3Credentials) => ({
  accessKeyId: Redacted.value(accessKeyId),
  secretAccessKey: Redacted.value(secretAccessKey),
  ...(sessionToken === undefined ? {} : { sessionToken: Redacted.value(sessionToken) })
})

/** Runs `reread` for new credentials when the store rejects the current ones, which may have expired, and at each reload. */
export const make = (
  options: S3Options,
  timeouts: S3Timeouts,
  reread: Effect.Effect<S3Credentials, { readonly message: string }>
) =>
  Effect.gen(function* () {
    const agent = yield* makeAgent({ connectTimeoutMillis: connectMillis })
    const address = addressOf(options)
    let credentials = reveal(options)
    const signingKeys = new Map<string, ArrayBuffer>()

    const renew = Effect.gen(function* () {
      const next = reveal(yield* reread)
      if (JSON.stringify(next) === JSON.stringify(credentials)) return
      credentials = next
      signingKeys.clear()
      yield* Effect.logInfo("The media store uses new credentials")
    }).pipe(
      Effect.catchAll(({ message }) =>
        Effect.logWarning(`The credentials of the media store were not replaced: ${message}`)
      )
    )
    yield* Effect.flatMap(Reloads, ({ register }) => register(renew))

    const toLoggable = (text: string) =>
      Object.values(credentials)
        .reduce((result, secret) => result.replaceAll(secret, "[credential]"), text.slice(0, 10 * detailLimit))
        .replaceAll(/\s+/g, " ")
        .trim()
        .slice(0, detailLimit)

    const toFailure = (error: unknown) => {
      const code = errorCode(error) ?? ""
      const message = error instanceof Error ? error.message : String(error)
      return new S3Failed({
        detail: toLoggable(`the store cannot be reached: ${code} ${message}`),
        status: undefined,
        code: undefined,
        isTransient: true
      })
    }

    /** Converts an error document of the store to a failure. It may come with any status, even 200. */
    const refusal = (request: S3Request, status: number, text: string, isTransient?: boolean) => {
      const code = elementOf(text, "Code")
      const explanation = code === undefined ? text : `${code}: ${elementOf(text, "Message") ?? ""}`
      const summary = `the store answered ${status} to ${request.method}`
      return new S3Failed({
        detail: toLoggable(explanation === "" ? summary : `${summary}: ${explanation}`),
        status,
        code,
        isTransient: isTransient ?? isTransientError(status, code)
      })
    }

    const sign = async (request: S3Request, now: number) => {
      const query = Object.entries(request.query ?? {}).map((pair) => pair.map(encodeURIComponent).join("="))
      const signer = new AwsV4Signer({
        ...credentials,
        service: "s3",
        region: options.region,
        cache: signingKeys,
        allHeaders: true,
        method: request.method,
        url: `${address}/${request.key}${query.length === 0 ? "" : `?${query.join("&")}`}`,
        headers: { ...request.headers, "x-amz-content-sha256": await hexOfSha256(request.body ?? new Uint8Array()) },
        datetime: new Date(now).toISOString().replaceAll(/[:-]|\.\d+/g, "")
      })
      return signer.sign()
    }

    // Uses a signal for the timeout, because Effect's does not apply in uninterruptible regions such as finalizers.
    const sendOnce = (request: S3Request, now: number) =>
      Effect.tryPromise({
        try: (interrupted) =>
          abortAfter(Duration.toMillis(timeouts.request), interrupted, async (signal) => {
            const { headers, url } = await sign(request, now)
            const answer = await send(url, {
              dispatcher: agent,
              method: request.method,
              headers: Object.fromEntries(headers),
              body: request.body ?? null,
              signal
            })
            return { status: answer.statusCode, headers: answer.headers, body: await collect(answer.body) }
          }),
        catch: toFailure
      })

    const sendWithCredentials = (request: S3Request): Effect.Effect<S3Answer, S3Failed> =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => sendOnce(request, now)).pipe(
        Effect.flatMap(({ body, headers, status }) => {
          if (status < 200 || status > 299) return refusal(request, status, body.toString("utf8", 0, 10_000))
          const header = (name: string) => {
            const value = headers[name]
            return typeof value === "string" ? value : value?.[0]
          }
          return Effect.succeed({ header, body })
        })
      )

    const ask = (request: S3Request): Effect.Effect<S3Answer, S3Failed> =>
      Effect.suspend(() => {
        const usedCredentials = credentials
        return Effect.catchIf(sendWithCredentials(request), isDenied, (error) =>
          Effect.flatMap(renew, () =>
            credentials === usedCredentials ? Effect.fail(error) : sendWithCredentials(request)
          )
        )
      })

    const retryTransient = <A>(work: Effect.Effect<A, S3Failed>) =>
      Effect.retry(work, {
        while: ({ isTransient }) => isTransient,
        schedule: Schedule.jittered(retries(timeouts.pause, maxAttempts - 1))
      })

    return { ask, retryTransient, refusal }
  })

export type S3Client = Effect.Effect.Success<ReturnType<typeof make>>
