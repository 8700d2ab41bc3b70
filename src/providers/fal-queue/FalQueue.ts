import { Effect } from "effect"
import type { Fetcher } from "../../services/media/Fetcher.ts"
import type { Provider } from "../../services/routing/Provider.ts"
import { jsonPieces } from "../../services/runtime/Pieces.ts"
import type { Upstream } from "../client/Upstream.ts"
import { type JobFormat, makeJobAdapters } from "../jobs/JobAdapter.ts"
import { decodeFailure } from "./Failure.ts"
import { options } from "./Options.ts"
import { decodeHandle, decodeProgress, decodeResult, isCompleted } from "./Response.ts"

export const format: JobFormat = {
  name: "FalQueue",
  options,
  pictureField: "image_urls",
  clipField: "image_url",
  authorization: (secret) => ({ authorization: `Key ${secret}` }),
  encode: ({ input, model }, mark) => ({ path: `/${model}`, body: jsonPieces(input, mark) }),
  decodeHandle,
  decodeProgress,
  decodeResult,
  decodeFailure,
  cancelMethod: "PUT",
  isCompleted
}

/** fal.ai's queue, and whatever speaks like it, with `Authorization: Key`. */
export const make: Effect.Effect<Provider, never, Upstream | Fetcher> = Effect.map(
  makeJobAdapters(format),
  (surfaces) => ({ adapter: "fal-queue", options: options.decode, ...surfaces })
)
