import { createServer, type Socket } from "node:net"
import { Effect, Option, Redacted, type Scope } from "effect"
import type { ProviderAccount } from "../../../src/domain/Model.ts"
import { Upstream, type UpstreamRequest, type UpstreamStream } from "../../../src/providers/client/Upstream.ts"
import type { ProviderFailure } from "../../../src/services/routing/Provider.ts"
import { type Body, effectOf, it } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"

export const secret = "sk-upstream-secret"
export const account = (baseUrl: string, headers: Readonly<Record<string, string>> = {}): ProviderAccount => {
  return { name: "fake", adapter: "openai-chat", baseUrl, credential: Redacted.make(secret), headers }
}
export const post = (baseUrl: string, headers?: Readonly<Record<string, string>>): UpstreamRequest => ({
  account: account(baseUrl, headers),
  path: "/echo?q=1",
  authorization: (key) => ({ authorization: `Bearer ${key}` }),
  headers: { "x-adapter": "yes" },
  body: '{"n":1}'
})

const layer = Upstream.layer({ connectTimeoutSeconds: 1, idleTimeoutSeconds: 1 })

/** A test with its own fake host. Timeouts are one second. */
export const check = (name: string, body: Body<[fake: Fake.FakeUpstream], Upstream | Scope.Scope>) =>
  it.scopedLive(name, () => Effect.flatMap(Fake.make, effectOf(body)).pipe(Effect.provide(layer)))

/** Returns the next bytes, or fails with the end. */
export const pull = (stream: UpstreamStream) =>
  Effect.async<ReadonlyArray<Uint8Array>, Option.Option<ProviderFailure>>((resume) => {
    const cancel = stream.next((taken) =>
      resume(taken._tag === "End" ? Effect.fail(taken.outcome) : Effect.succeed(taken.chunks))
    )
    return Effect.sync(cancel)
  })

/** Reads to the end. Returns the number of bytes and the end. */
export const drained = (stream: UpstreamStream) => {
  let bytes = 0
  const reading = Effect.forever(
    Effect.map(pull(stream), (chunks) => {
      for (const chunk of chunks) bytes += chunk.length
    })
  )
  return Effect.map(Effect.flip(reading), (end) => ({ bytes, failure: Option.getOrUndefined(end) }))
}

/** The port of a raw TCP server. */
export const listen = (onConnection: (socket: Socket) => void, options: { readonly pauseOnConnect?: boolean } = {}) =>
  Effect.acquireRelease(
    Effect.async<ReturnType<typeof createServer>>((resume) => {
      const server = createServer(options, (socket) => {
        socket.on("error", () => undefined)
        onConnection(socket)
      })
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  ).pipe(
    Effect.map((server) => {
      const address = server.address()
      return address === null || typeof address === "string" ? 0 : address.port
    })
  )
