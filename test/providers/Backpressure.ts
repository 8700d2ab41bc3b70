import { Effect } from "effect"
import type { Reply } from "../harness/upstream/FakeUpstream.ts"

/** A host that writes a body as fast as the connection accepts it, and reports its progress. */
export const makeWriter = (piece: string | Uint8Array, totalBytes: number, end = "") => {
  let written = 0
  const reply: Reply = async (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" })
    while (written < totalBytes) {
      written += piece.length
      if (!response.write(piece)) await new Promise((resume) => response.once("drain", resume))
    }
    response.end(end)
  }
  /** Waits until nothing was written for this time. */
  const stalled = Effect.fnUntraced(function* (quietMillis: number) {
    for (let still = 0, seen = -1; still < 10; still = seen === written ? still + 1 : 0) {
      seen = written
      yield* Effect.sleep(quietMillis / 10)
    }
  })
  return { reply, stalled, written: () => written }
}
