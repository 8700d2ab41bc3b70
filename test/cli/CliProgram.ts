import { NodeRuntime } from "@effect/platform-node"
import { Console, Data, Effect } from "effect"
import { run } from "../../src/cli.ts"

class Refused extends Data.TaggedError("Refused")<{ readonly message: string }> {}

NodeRuntime.runMain(
  Effect.flatMap(
    run(process.argv, {
      serve: ({ json }) =>
        process.env["SERVE_FAILS"] === undefined
          ? Console.log(json ? "serving in JSON" : "serving")
          : Effect.fail(new Refused({ message: "It cannot\nbe served." }))
    }),
    (code) =>
      Effect.sync(() => {
        process.exitCode = code
      })
  ),
  { disablePrettyLogger: true }
)
