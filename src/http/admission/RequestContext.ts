import type { IncomingMessage } from "node:http"
import { Context, Effect } from "effect"
import { Ids } from "../../services/runtime/Ids.ts"
import * as Monotonic from "../../services/runtime/Monotonic.ts"
import { clientAddress } from "./ClientAddress.ts"

export class RequestContext extends Context.Reference<RequestContext>()("gateway/http/RequestContext", {
  defaultValue: () => ({
    /** The client's own x-request-id where it is well-formed, else one made here. */
    requestId: "none",
    /** The client's address, behind the proxies that are trusted. */
    address: "unknown",
    at: 0,
    startedAt: 0
  })
}) {}

const wellFormedId = /^[A-Za-z0-9._-]{1,128}$/

export const contextMaker = (options: { readonly trustedProxies: number }) =>
  Effect.gen(function* () {
    const ids = yield* Ids
    const clock = yield* Effect.clock
    return ({ headers, socket }: IncomingMessage): typeof RequestContext.Service => {
      const sent = headers["x-request-id"]
      return {
        requestId: typeof sent === "string" && wellFormedId.test(sent) ? sent : ids.prefixed("req"),
        address: clientAddress(socket.remoteAddress, headers["x-forwarded-for"], options.trustedProxies),
        at: clock.unsafeCurrentTimeMillis(),
        startedAt: Monotonic.millisOf(clock)
      }
    }
  })
