import type { IncomingMessage } from "node:http"
import { Effect } from "effect"
import { InvalidRequest } from "../../domain/Failure.ts"
import { keepConnectionOfUnread } from "../../node/UnreadRequest.ts"

const refused = (message: string) => new InvalidRequest({ message, param: null })

const within = "10 seconds"

/** The bytes of a body as they came; fails once they are too many or come too slowly, and keeps no more of them. */
export const rawBody = (request: IncomingMessage, limitBytes: number): Effect.Effect<Buffer, InvalidRequest> =>
  Effect.async<Buffer, InvalidRequest>((resume) => {
    const tooLarge = refused(`The body is larger than ${limitBytes} bytes.`)
    const chunks: Array<Buffer> = []
    let bytes = 0
    const stop = () => {
      request.off("data", take).off("end", end).off("error", fail).off("close", fail)
      if (request.readableEnded) return
      keepConnectionOfUnread(request)
      request.resume()
    }
    const settle = (outcome: Effect.Effect<Buffer, InvalidRequest>) => {
      stop()
      resume(outcome)
    }
    const take = (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > limitBytes) return settle(tooLarge)
      chunks.push(chunk)
    }
    const end = () => settle(Effect.succeed(Buffer.concat(chunks)))
    const fail = () => settle(refused("The body did not arrive."))
    if (Number(request.headers["content-length"] ?? 0) > limitBytes) return settle(tooLarge)
    request.on("data", take).once("end", end).once("error", fail).once("close", fail)
    return Effect.sync(stop)
  }).pipe(Effect.timeoutFail({ duration: within, onTimeout: () => refused("The body did not arrive in time.") }))
