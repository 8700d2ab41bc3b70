import { Context } from "effect"

/** What is known of a request before anything is decided about it. */
export interface RequestContextShape {
  /** The client's own x-request-id where it is well-formed, else one made here. */
  readonly requestId: string
  /** The client's address, behind the proxies that are trusted. */
  readonly address: string
  /** Unix milliseconds. */
  readonly startedAt: number
}

export class RequestContext extends Context.Tag("gateway/RequestContext")<RequestContext, RequestContextShape>() {}
