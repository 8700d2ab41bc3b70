import { createHash } from "node:crypto"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Schema } from "effect"
import { draw, imageOf } from "./SandboxMedia.ts"

const Report = Schema.Struct({ sharedObjects: Schema.Array(Schema.String) })

/** Whether the drawing library has been loaded. */
const loaded = Effect.map(
  Effect.suspend(() => Schema.decodeUnknown(Report)(process.report.getReport())),
  ({ sharedObjects }) => sharedObjects.some((name) => name.includes("vips"))
)

NodeRuntime.runMain(
  Effect.gen(function* () {
    yield* imageOf
    yield* Console.log(yield* loaded)
    const { bytes } = yield* draw({})
    yield* Console.log(createHash("sha256").update(bytes).digest("hex"))
    yield* Console.log(yield* loaded)
  })
)
