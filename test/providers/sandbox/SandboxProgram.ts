import { createHash } from "node:crypto"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Schema } from "effect"
import { png } from "../../harness/fixtures/TinyMedia.ts"
import { draw } from "./SandboxMedia.ts"

const Report = Schema.Struct({ sharedObjects: Schema.Array(Schema.String) })

const findAddons = Effect.map(
  Effect.suspend(() => Schema.decodeUnknown(Report)(process.report.getReport())),
  ({ sharedObjects }) => sharedObjects.filter((name) => name.endsWith(".node"))
)

NodeRuntime.runMain(
  Effect.gen(function* () {
    for (const references of [[], [{ type: "image/png", bytes: png } as const]]) {
      const line = Effect.match(draw({ references }), {
        onFailure: ({ class: kind, detail }) => `${kind}: ${detail}`,
        onSuccess: ({ bytes }) => createHash("sha256").update(bytes).digest("hex")
      })
      yield* Console.log(yield* line)
    }
    yield* Console.log((yield* findAddons).length)
  })
)
