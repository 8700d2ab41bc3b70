import { createServer, type ServerResponse } from "node:http"
import { HttpServerError } from "@effect/platform"
import { Context, Effect, Layer } from "effect"
import { Aborted } from "../../domain/Failure.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { type Answer, json, wireError } from "../Answer.ts"
import { toWire } from "../errors/ErrorMessages.ts"
import { pathOf } from "./RequestPath.ts"

const probes: Readonly<Record<string, Answer>> = {
  "/healthz": json(200, { status: "ok" }),
  "/readyz": json(503, { status: "unready", reason: "migrating" })
}

const maxConnections = 1_000
const receiveWithin = 5_000
/** Time for answers that are being sent. */
const finishWithin = 1_000

const send = (response: ServerResponse, { body, headers, status }: Answer, requestId: string): void => {
  response.writeHead(status, { ...headers, "x-request-id": requestId, connection: "close" })
  response.end(typeof body === "string" ? body : undefined)
}

/**
 * Answers probes at the gateway's address while migrations run, which may take minutes. Without answers an orchestrator
 * would kill the process. The gateway's own server then takes over the address.
 */
export class StartingServer extends Context.Reference<StartingServer>()("gateway/http/StartingServer", {
  defaultValue: (): {
    readonly listen: Effect.Effect<void, HttpServerError.ServeError>
    /** Frees the address at once. */
    readonly close: () => void
  } => ({ listen: Effect.void, close: () => {} })
}) {
  static readonly layer = ({ host, port }: { readonly host: string; readonly port: number }) =>
    Layer.scoped(
      StartingServer,
      Effect.gen(function* () {
        const ids = yield* Ids
        const server = createServer({
          requestTimeout: receiveWithin,
          headersTimeout: receiveWithin,
          connectionsCheckingInterval: receiveWithin
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
          setTimeout(() => server.closeAllConnections(), finishWithin).unref()
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
