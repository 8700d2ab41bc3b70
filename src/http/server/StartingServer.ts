import { createServer, type ServerResponse } from "node:http"
import { HttpServerError } from "@effect/platform"
import { Context, Effect, Layer } from "effect"
import { Aborted } from "../../domain/Failure.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { requestIdHeader } from "../AnswerHeaders.ts"
import { toWire } from "../errors/ErrorMessages.ts"
import { type Answer, json, wireError } from "../HttpAnswer.ts"
import { pathOf } from "./PathTable.ts"

const probes: Readonly<Record<string, Answer>> = {
  "/healthz": json(200, { status: "ok" }),
  "/readyz": json(503, { status: "unready", reason: "migrating" })
}

const maxConnections = 1_000
const receiveMillis = 5_000
/** How long unfinished responses may take after `close`. */
const finishMillis = 1_000

const send = (response: ServerResponse, { body, headers, status }: Answer, requestId: string): void => {
  response.writeHead(status, { ...headers, [requestIdHeader]: requestId, connection: "close" })
  response.end(typeof body === "string" ? body : undefined)
}

/**
 * Responds to probes at the gateway's address while migrations run, which may take minutes. Without responses an orchestrator
 * would kill the process. After the migrations, the gateway's own server listens at the address.
 */
export class StartingServer extends Context.Reference<StartingServer>()("gateway/http/StartingServer", {
  defaultValue: (): {
    readonly listen: Effect.Effect<void, HttpServerError.ServeError>
    /** Immediately stops listening, so the gateway's own server can listen at the address. */
    readonly close: () => void
  } => ({ listen: Effect.void, close: () => {} })
}) {
  static readonly layer = ({ host, port }: { readonly host: string; readonly port: number }) =>
    Layer.scoped(
      StartingServer,
      Effect.gen(function* () {
        const ids = yield* Ids
        const server = createServer({
          requestTimeout: receiveMillis,
          headersTimeout: receiveMillis,
          connectionsCheckingInterval: receiveMillis
        })
        server.maxConnections = maxConnections
        server.on("request", (request, response) => {
          const answer = probes[pathOf(request.url ?? "")] ?? wireError(toWire(new Aborted()))
          request.resume()
          send(response, answer, ids.prefixed("req"))
        })
        const close = () => {
          if (!server.listening) return
          server.close()
          setTimeout(() => server.closeAllConnections(), finishMillis).unref()
        }
        yield* Effect.addFinalizer(() => Effect.sync(close))
        return {
          listen: Effect.async((resume) => {
            server.on("error", (cause) => resume(new HttpServerError.ServeError({ cause })))
            server.listen({ host, port }, () => resume(Effect.void))
          }),
          close
        }
      })
    )
}
