import type { Server } from "node:http"
import { HttpApiBuilder, HttpRouter } from "@effect/platform"
import { NodeHttpServer } from "@effect/platform-node"
import { Effect, Layer, Runtime, RuntimeFlags } from "effect"
import type { Endpoint } from "../admission/Endpoint.ts"
import { inOrder } from "../connections/InOrder.ts"
import { makeCors } from "./Cors.ts"
import { makeGeneratingTable } from "./PathTable.ts"
import { makePipeline, type PipelineOptions } from "./Pipeline.ts"
import { pathOf } from "./RequestPath.ts"

export interface DispatchOptions extends PipelineOptions {
  /** Origins whose pages may call, or `*`. */
  readonly corsOrigins: ReadonlyArray<string>
}

/** Longer than Node's limit for a head, so that the router sees the path of a long id. */
const longestTarget = 64 * 1024

/** Hands each request to the pipeline: what generates in one fiber, without the platform's router and middleware. */
export const layer = <E, R>(
  node: Server,
  options: DispatchOptions,
  endpoints: Effect.Effect<ReadonlyArray<Endpoint>, E, R>
) =>
  Layer.scopedDiscard(
    Effect.gen(function* () {
      const { corsOrigins } = options
      const { generate, serve } = yield* makePipeline(options)
      const findGenerating = makeGeneratingTable(yield* endpoints)
      const answerPreflight = corsOrigins.length === 0 ? undefined : yield* makeCors(corsOrigins)
      const router = HttpRouter.toHttpApp(yield* HttpApiBuilder.Router.router)
      const app = yield* HttpRouter.withRouterConfig(router, { caseSensitive: true, maxParamLength: longestTarget })
      const handle = yield* NodeHttpServer.makeHandler(serve(app))
      const fork = Runtime.runFork(Runtime.disableRuntimeFlag(yield* Effect.runtime(), RuntimeFlags.Interruption))

      const receive = inOrder((request, response) => {
        const { method, url = "" } = request
        if (answerPreflight?.(pathOf(url), request, response)) return
        const endpoint = findGenerating(method, url)
        if (endpoint === undefined) return handle(request, response)
        // By then a body that came with its head is there too.
        setImmediate(() => fork(generate({ endpoint, request, response })))
      })
      yield* Effect.acquireRelease(
        Effect.sync(() => node.on("request", receive)),
        () => Effect.sync(() => node.off("request", receive))
      )
    })
  ).pipe(Layer.provide(HttpApiBuilder.Router.Live))
