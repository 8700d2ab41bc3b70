import { Context } from "effect"

/** What is known of a request before anything is decided about it; the edge provides it to every request. */
export class RequestContext extends Context.Reference<RequestContext>()("gateway/http/RequestContext", {
  defaultValue: () => ({
    /** The client's own x-request-id where it is well-formed, else one made here. */
    requestId: "none",
    /** The client's address, behind the proxies that are trusted. */
    address: "unknown",
    /** Unix milliseconds of its beginning, for the log. */
    at: 0,
    /** The same on the monotonic clock, for durations. */
    startedAt: 0
  })
}) {}
