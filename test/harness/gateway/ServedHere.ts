import { HttpServer } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { Effect, Layer, Logger, ManagedRuntime } from "effect"
import * as Gateway from "../../../src/Gateway.ts"
import { withoutOwnSpans } from "../../../src/Serve.ts"
import { readSettings } from "../../../src/Settings.ts"
import { readCatalogFile } from "../../../src/services/catalog/Catalog.ts"
import { ownFile } from "../../../src/services/runtime/OwnFiles.ts"

/** Who is still asking at the end of a test has lost interest. */
const atOnce = { SHUTDOWN_DELAY: "0", SHUTDOWN_TIMEOUT: "1" }

/**
 * Serves with these settings in this process until the scope ends, on a free port unless they name one. Its runtime is
 * its own: no clock, layer or logger of the test reaches it.
 */
export const serveHere = Effect.fnUntraced(function* (given: Readonly<Record<string, string>>) {
  const environment = { PORT: "0", ...atOnce, ...given }
  const settings = yield* readSettings(environment)
  const file = settings.catalogFile ?? ownFile("catalog.yaml")
  const readCatalog = Effect.map(readCatalogFile(file), (source) => ({ source, environment }))
  const gateway = Layer.unwrapEffect(
    Effect.map(Effect.context<NodeContext.NodeContext>(), (node) =>
      Gateway.layer({ settings, readCatalog: Effect.provide(readCatalog, node) })
    )
  ).pipe(
    Layer.provide(Gateway.database(settings)),
    Layer.provide(NodeContext.layer),
    Layer.provide(Layer.merge(withoutOwnSpans, Logger.remove(Logger.defaultLogger)))
  )
  const runtime = yield* Effect.acquireRelease(
    Effect.sync(() => ManagedRuntime.make(gateway)),
    ({ dispose }) => Effect.promise(dispose)
  )
  const { address } = yield* Effect.promise(() => runtime.runPromise(HttpServer.HttpServer))
  return { url: `http://127.0.0.1:${address._tag === "TcpAddress" ? address.port : 0}` }
})
