import { readdir, rm, stat } from "node:fs/promises"
import http from "node:http"
import path from "node:path"
import { Effect, Redacted } from "effect"
import S3rver from "s3rver"
import type { S3Options } from "../../src/storage/S3Client.ts"
import { listen } from "../harness/Listening.ts"
import { temporaryDirectory } from "../harness/temporary.ts"
import { type Account, type SignedRequest, type Verdict, verify } from "./SigV4.ts"

export const bucket = "media-of-tests"

/** What a store may do instead of its work; `lose` does the work and breaks the connection. */
export type Misdeed = { readonly status: number; readonly body: string } | "break" | "lose" | "hang"

export interface S3Server {
  readonly url: string
  readonly options: Omit<S3Options, "publicUrl">
  /** Where the bucket's files are. */
  readonly directory: string
  /** Everything that was asked, oldest first, as `PUT /bucket/key`, and what became of its signature. */
  readonly asked: ReadonlyArray<{ readonly line: string; readonly verdict: Verdict }>
  /** Changes requests on their way; undefined lets them be. */
  tamper: ((request: SignedRequest) => SignedRequest) | undefined
  misbehave: ((request: SignedRequest) => Misdeed | undefined) | undefined
  /** The session token that it accepts now. */
  sessionToken: string
}

const account = {
  accessKeyId: "AKIDOFTESTS",
  secretAccessKey: "secret/of+tests=",
  sessionToken: "token/of+tests=",
  region: "eu-test-1"
} satisfies Account

const xml = (code: string) => `<?xml version="1.0"?><Error><Code>${code}</Code><Message>Says ${code}</Message></Error>`

const bodyOf = async (request: http.IncomingMessage) => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks)
}

const without = <A>(headers: Readonly<Record<string, A>>, names: ReadonlyArray<string>) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)))

const isPublicRead = ({ headers, method, target }: SignedRequest) =>
  headers["authorization"] === undefined &&
  (method === "GET" || method === "HEAD") &&
  target.startsWith(`/${bucket}/public/`)

const sizeOf = (file: string) =>
  stat(file).then(
    ({ size }) => size,
    () => -1
  )

/** The server answers before its last bytes are written. */
const settled = async (file: string, size: number) => {
  for (let look = 0; look < 2_000 && (await sizeOf(file)) !== size; look++) {
    await new Promise((resume) => setTimeout(resume, 2))
  }
}

/** Passes a request on without its signature, which the server behind would not understand. */
const passOn = (request: SignedRequest, port: number) =>
  new Promise<{ readonly status: number; readonly headers: http.IncomingHttpHeaders; readonly body: Buffer }>(
    (resolve, reject) => {
      const headers = without(request.headers, ["authorization", "connection", "host", "transfer-encoding"])
      const length = { "content-length": String(request.body.length) }
      const onward = http.request(
        { port, host: "127.0.0.1", method: request.method, path: request.target, headers: { ...headers, ...length } },
        (answer) =>
          void bodyOf(answer).then(
            (body) => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body }),
            reject
          )
      )
      onward.on("error", reject).end(request.body)
    }
  )

const work = async (request: SignedRequest, directory: string, port: number) => {
  const url = new URL(request.target, "http://any")
  const key = url.pathname.slice(bucket.length + 2)
  const uploadId = url.searchParams.get("uploadId")
  const object = path.join(directory, `${key}._S3rver_object`)
  if (uploadId === null) {
    const answer = await passOn(request, port)
    if (request.method === "PUT" && answer.status === 200) await settled(object, request.body.length)
    return answer
  }
  const parts = path.join(directory, "._S3rver_uploads", path.basename(uploadId))
  if ((await sizeOf(parts)) === -1) return { status: 404, headers: {}, body: Buffer.from(xml("NoSuchUpload")) }
  if (request.method === "DELETE") {
    await rm(parts, { recursive: true })
    return { status: 204, headers: {}, body: Buffer.alloc(0) }
  }
  const numbers = (await readdir(parts)).filter((name) => /^\d+$/.test(name))
  const sizes = await Promise.all(numbers.map((name) => sizeOf(path.join(parts, name))))
  const answer = await passOn(request, port)
  const part = url.searchParams.get("partNumber")
  if (part !== null) await settled(path.join(parts, part), request.body.length)
  else
    await settled(
      object,
      sizes.reduce((sum, size) => sum + size, 0)
    )
  return answer
}

/**
 * A real store of objects behind a door that believes nothing unsigned but reads of `public/`, as a bucket's policy
 * would have it. Uploads can be given up, which the server itself cannot do.
 */
export const make = Effect.gen(function* () {
  const root = yield* temporaryDirectory
  const server = new S3rver({
    address: "127.0.0.1",
    port: 0,
    directory: root,
    silent: true,
    configureBuckets: [{ name: bucket }]
  })
  const { port } = yield* Effect.acquireRelease(
    Effect.promise(() => server.run()),
    () => Effect.promise(() => server.close())
  )
  const directory = path.join(root, bucket)
  const asked: Array<S3Server["asked"][number]> = []

  const answer = async (incoming: http.IncomingMessage, response: http.ServerResponse) => {
    const pairs = Object.entries(incoming.headers).map(([name, value]) => [name, String(value)] as const)
    const sent: SignedRequest = {
      method: incoming.method ?? "",
      target: incoming.url ?? "",
      headers: Object.fromEntries(pairs),
      body: await bodyOf(incoming)
    }
    const request = made.tamper?.(sent) ?? sent
    const verdict = isPublicRead(request)
      ? "ok"
      : verify(request, { ...account, sessionToken: made.sessionToken }, Date.now())
    asked.push({ line: `${request.method} ${request.target}`, verdict })
    const misdeed = verdict === "ok" ? made.misbehave?.(request) : { status: 403, body: xml(verdict) }
    if (misdeed === "hang") return
    if (misdeed === "break") return void response.destroy()
    if (typeof misdeed === "object") return void response.writeHead(misdeed.status).end(misdeed.body)
    const done = await work(request, directory, port)
    if (misdeed === "lose") return void response.destroy()
    response.writeHead(done.status, without(done.headers, ["connection", "transfer-encoding"])).end(done.body)
  }

  const door = http.createServer((request, response) => void answer(request, response).catch(() => response.destroy()))
  const url = `http://127.0.0.1:${yield* Effect.orDie(listen(door))}`
  const made: S3Server = {
    url,
    options: {
      bucket,
      endpoint: url,
      region: account.region,
      accessKeyId: Redacted.make(account.accessKeyId),
      secretAccessKey: Redacted.make(account.secretAccessKey),
      sessionToken: Redacted.make(account.sessionToken)
    },
    directory,
    asked,
    sessionToken: account.sessionToken,
    tamper: undefined,
    misbehave: undefined
  }
  return made
})
