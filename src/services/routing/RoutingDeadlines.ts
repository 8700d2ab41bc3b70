export interface RoutingDeadlines {
  /** An image, a JSON answer, and a stream up to its first delta, over all routes. */
  readonly requestTimeoutSeconds: number
  /** One route's time up to a stream's first delta. */
  readonly firstByteTimeoutSeconds: number
  /** A stream from its request to its end. */
  readonly streamTimeoutSeconds: number
}

export const usualDeadlines: RoutingDeadlines = {
  requestTimeoutSeconds: 290,
  firstByteTimeoutSeconds: 60,
  streamTimeoutSeconds: 3600
}
