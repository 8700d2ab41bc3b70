import { Effect } from "effect"
import { png } from "../harness/fixtures/TinyMedia.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"

/** The built-in catalog, served by the sandbox. */
export const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

export const model = "gemini-3.6-flash"
/** USD per million tokens of the model, as the catalog has them. */
export const listed = { prompt: 1.5, completion: 7.5 }

/** What so many tokens of the model cost, in nano-USD. */
export const costOf = (prompt: number | null | undefined, completion: number | null | undefined): bigint =>
  BigInt(prompt ?? 0) * BigInt(listed.prompt * 1_000) + BigInt(completion ?? 0) * BigInt(listed.completion * 1_000)

/** A whole PNG of one pixel. */
export const pixel = png.toString("base64")
