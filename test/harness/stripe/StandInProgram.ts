/** The program of `npm run stripe-stand-in`. It reads the gateway's `.env`. */

import { randomBytes } from "node:crypto"
import { parseArgs } from "node:util"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Data, Effect } from "effect"
import { readEnvironment } from "../../../src/settings/Environment.ts"
import { standIn } from "./StandIn.ts"

class Refused extends Data.TaggedError("Refused")<{ readonly message: string }> {}

const random = (prefix: string) => prefix + randomBytes(16).toString("hex")

const readArguments = Effect.try({
  try: () =>
    parseArgs({ options: { gateway: { type: "string" }, port: { type: "string" }, help: { type: "boolean" } } }).values,
  catch: (error) => new Refused({ message: error instanceof Error ? error.message : String(error) })
})

const usage = `A stand-in for Stripe, for trying payments: npm run stripe-stand-in -- [--gateway URL] [--port PORT]
  --gateway  where its events go; default: http://127.0.0.1 at the PORT of .env, or 8787
  --port     where it listens; default: the port of STRIPE_API_BASE in .env, or 8788`

const program = Effect.gen(function* () {
  const given = yield* readArguments
  if (given.help === true) return yield* Console.log(usage)
  const environment = yield* readEnvironment()
  const {
    STRIPE_API_BASE,
    STRIPE_SECRET_KEY = random("sk_test_"),
    STRIPE_WEBHOOK_SECRET = random("whsec_")
  } = environment
  if (!STRIPE_SECRET_KEY.startsWith("sk_test_")) {
    return yield* new Refused({
      message: "STRIPE_SECRET_KEY is a real Stripe key: use another .env for the stand-in."
    })
  }
  const gateway = (given.gateway ?? `http://127.0.0.1:${environment["PORT"] ?? 8787}`).replace(/\/+$/, "")
  const configured = /^http:\/\/(?:127\.0\.0\.1|localhost):(\d+)/.exec(STRIPE_API_BASE ?? "")?.[1]
  const port = Number(given.port ?? configured ?? 8788)
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    return yield* new Refused({ message: "--port must be an integer from 1 to 65535." })
  }
  const options = { port, gateway, secretKey: STRIPE_SECRET_KEY, webhookSecret: STRIPE_WEBHOOK_SECRET }
  const { url } = yield* standIn(options).pipe(
    Effect.catchAllDefect((defect) => new Refused({ message: `It cannot listen on port ${port}: ${String(defect)}` }))
  )
  const settings = {
    STRIPE_SECRET_KEY,
    STRIPE_WEBHOOK_SECRET,
    STRIPE_API_BASE: url
  }
  const missing = Object.entries(settings).filter(([name, value]) => environment[name] !== value)
  yield* Console.log(
    [
      `A stand-in for Stripe: ${url}`,
      `Its events go to ${gateway}/stripe/webhook. It keeps everything in memory.`,
      ...(missing.length === 0
        ? []
        : [
            "",
            "Put this into the gateway's .env and restart the gateway:",
            "",
            ...missing.map((pair) => pair.join("="))
          ])
    ].join("\n")
  )
  return yield* Effect.never
}).pipe(Effect.scoped)

NodeRuntime.runMain(
  Effect.catchAll(program, ({ message }) =>
    Effect.sync(() => {
      process.stderr.write(`stripe-stand-in: ${message}\n`)
      process.exitCode = 1
    })
  ),
  { disablePrettyLogger: true }
)
