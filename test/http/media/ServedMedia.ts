import { readdirSync, readlinkSync } from "node:fs"
import type { Server } from "node:http"
import path from "node:path"
import { HttpServer } from "@effect/platform"
import { NodeHttpServer } from "@effect/platform-node"
import { Context, Effect, Layer, Logger } from "effect"
import { MissingApiKey } from "../../../src/domain/Failure.ts"
import { MediaHandlers } from "../../../src/http/media/MediaHandlers.ts"
import * as Dispatch from "../../../src/http/server/Dispatch.ts"
import { makeNodeServer } from "../../../src/http/server/NodeServer.ts"
import { Auth } from "../../../src/services/access/Auth.ts"
import { RateLimiter, TokenWindows } from "../../../src/services/access/RateLimiter.ts"
import { Idempotency } from "../../../src/services/idempotency/Idempotency.ts"
import { Instance } from "../../../src/services/instance/Instance.ts"
import { Refunds } from "../../../src/services/ledger/Refunds.ts"
import { MediaStore } from "../../../src/services/media/MediaStore.ts"
import { InFlight } from "../../../src/services/runtime/InFlight.ts"
import { RequestLog } from "../../../src/services/telemetry/RequestLog.ts"
import * as DiskStore from "../../../src/storage/DiskStore.ts"
import * as LedgerFake from "../../fakes/LedgerFake.ts"
import * as RequestReporterFake from "../../fakes/RequestReporterFake.ts"
import { temporaryDirectory } from "../../harness/temporary.ts"
import { openTo } from "../connections/RawSocket.ts"

export const blocked = "203.0.113.9"
export const digits = Buffer.from("0123456789")

/** The routes of local media behind the gateway's own pipeline, over a store on disk. */
export class ServedMedia extends Context.Tag("test/ServedMedia")<
  ServedMedia,
  {
    readonly url: string
    /** The store's. */
    readonly directory: string
    readonly node: Server
    readonly logged: ReadonlyArray<unknown>
    /** Open files below the store's directory, by name; undefined where the system does not tell. */
    readonly openFiles: () => ReadonlyArray<string> | undefined
  }
>() {}

const openFilesBelow = (directory: string) => {
  try {
    return readdirSync("/proc/self/fd").flatMap((descriptor) => {
      try {
        const file = readlinkSync(`/proc/self/fd/${descriptor}`)
        return file.startsWith(directory) ? [path.relative(directory, file)] : []
      } catch {
        return []
      }
    })
  } catch {
    return undefined
  }
}

/** Files need none of them. */
const ofGenerations = Layer.mergeAll(
  Layer.mock(Idempotency, {}),
  Layer.mock(Instance, { isAdmitting: () => true, isBeating: () => true }),
  LedgerFake.layer,
  Layer.mock(RateLimiter, {}),
  Layer.mock(TokenWindows, {}),
  Layer.mock(Refunds, {}),
  Layer.mock(RequestLog, {})
)

const served = Effect.gen(function* () {
  const directory = path.join(yield* temporaryDirectory, "media")
  const node = yield* Effect.provide(makeNodeServer, RequestReporterFake.layer)
  const logged: Array<unknown> = []
  const auth = Layer.succeed(Auth, {
    authenticate: () => new MissingApiKey(),
    isBlocked: (address) => Effect.succeed(address === blocked),
    findCached: () => undefined
  })
  const options = { trustedProxies: 1, defaultRpm: 600, corsOrigins: [] }
  const http = Dispatch.layer(node, options, Effect.succeed([])).pipe(
    Layer.provide(MediaHandlers({ mediaDirectory: directory })),
    Layer.provide(Layer.mergeAll(auth, InFlight.layer, ofGenerations)),
    Layer.provideMerge(NodeHttpServer.layer(() => node, { host: "127.0.0.1", port: 0 })),
    Layer.provide(
      Logger.replace(
        Logger.defaultLogger,
        Logger.make(({ message }) => logged.push(message))
      )
    )
  )
  yield* Effect.addFinalizer(() => Effect.sync(() => node.closeAllConnections()))
  const server = yield* Layer.build(http)
  const { address } = Context.get(server, HttpServer.HttpServer)
  const url = `http://127.0.0.1:${address._tag === "TcpAddress" ? address.port : 0}`
  const store = DiskStore.layer({ directory, publicUrl: `${url}/media` })
  const openFiles = () => openFilesBelow(directory)
  return Layer.merge(store, Layer.succeed(ServedMedia, { url, directory, node, logged, openFiles }))
})

export const layer: Layer.Layer<ServedMedia | MediaStore> = Layer.unwrapScoped(served).pipe(
  Layer.provide(RequestReporterFake.layer),
  Layer.orDie
)

export const put = (
  body: Uint8Array,
  type: "image/png" | "video/mp4" = "image/png",
  visibility: "public" | "private" = "public"
) => Effect.flatMap(MediaStore, (store) => store.put({ type, visibility, body }))

export const ask = (at: string, init: RequestInit = {}) =>
  Effect.flatMap(ServedMedia, ({ url }) =>
    Effect.promise(async () => {
      const response = await fetch(`${url}${at}`, init)
      return { status: response.status, headers: response.headers, text: await response.text() }
    })
  )

/** Everything that comes back for what is sent as it is. */
export const exchange = (text: string) =>
  Effect.gen(function* () {
    const { url } = yield* ServedMedia
    const connection = yield* openTo(url)
    yield* connection.write(text)
    return yield* connection.closed
  }).pipe(Effect.scoped)

export const get = (target: string, more = "") =>
  Effect.map(exchange(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${more}\r\n`), (text) => {
    const [head = "", body = ""] = text.split("\r\n\r\n")
    const [line = "", ...headers] = head.split("\r\n")
    const pairs = headers.map((one): [string, string] => [
      one.slice(0, one.indexOf(":")),
      one.slice(one.indexOf(":") + 1)
    ])
    return { status: Number(line.split(" ")[1]), headers: new Headers(pairs), text: body }
  })
