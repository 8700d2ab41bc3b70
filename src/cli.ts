import { stripVTControlCharacters } from "node:util"
import { CliConfig, Command, HelpDoc, ValidationError } from "@effect/cli"
import { NodeContext } from "@effect/platform-node"
import { Console, Effect, Layer } from "effect"
import packageJson from "../package.json" with { type: "json" }
import { catalog } from "./cli/CatalogCommands.ts"
import { interpret } from "./cli/CommandLine.ts"
import { backup, migrate, restore } from "./cli/DatabaseCommands.ts"
import { doctor } from "./cli/DoctorCommand.ts"
import { overview, render } from "./cli/Help.ts"
import * as Inputs from "./cli/Inputs.ts"
import { keys } from "./cli/KeyCommands.ts"
import { holds, ledger, statement } from "./cli/LedgerCommands.ts"
import { models, providers, routes } from "./cli/ModelCommands.ts"
import { blocklist, open, operators } from "./cli/OperatorCommands.ts"
import { credits, orgs } from "./cli/OrgCommands.ts"
import { payments } from "./cli/PaymentCommands.ts"
import { reconcile } from "./cli/ReconcileCommand.ts"
import { requests, usage } from "./cli/RequestCommands.ts"
import { media, videos } from "./cli/VideoCommands.ts"
import { webhooks } from "./cli/WebhookCommands.ts"
import { inOneLine, runToExitCode, UsageError } from "./ExitCode.ts"
import { describeSettings } from "./settings/Variables.ts"

export type Serve = (options: {
  readonly json: boolean
  /** Overrides the setting WORKERS. */
  readonly workers: string | undefined
}) => Effect.Effect<void, { readonly message: string }>

const workers = Inputs.optional(
  Inputs.text("workers"),
  "number of worker processes, or auto for one per core; default: the setting WORKERS"
)

export const groupsFor = (start: Serve) => {
  const serve = Command.make(
    "serve",
    {
      json: Inputs.flag("json", "accepted as in all commands, without effect; for a JSON log, set LOG_FORMAT=json"),
      workers
    },
    start
  ).pipe(Command.withDescription("Run the gateway."))
  return [
    { title: "RUN", commands: [serve, open, doctor, migrate, backup, restore, operators] },
    { title: "CUSTOMERS", commands: [orgs, keys, credits, payments, ledger, statement, holds, webhooks, blocklist] },
    {
      title: "MODELS AND TRAFFIC",
      commands: [catalog, models, providers, routes, requests, usage, reconcile, videos, media]
    }
  ] as const
}

const description = "One gateway for all models. gateway help COMMAND shows a command's options."

export const commandOf = ([running, customers, traffic]: ReturnType<typeof groupsFor>) =>
  Command.make("gateway").pipe(
    Command.withDescription(description),
    Command.withSubcommands([...running.commands, ...customers.commands, ...traffic.commands])
  )

/** The library refuses only values, because `interpret` has checked the names of commands and options. */
const toUsageError = (error: unknown) =>
  ValidationError.isValidationError(error)
    ? new UsageError({ message: inOneLine(HelpDoc.toAnsiText(error.error)) })
    : error

/** Discards the error output of @effect/cli, because `runToExitCode` prints usage errors itself. */
const consoleFor = (own: Console.Console): Console.Console => ({
  ...own,
  log: (...texts) =>
    own.log(...texts.map((text) => (process.stdout.isTTY ? text : stripVTControlCharacters(String(text))))),
  error: () => Effect.void
})

export const run = (argv: ReadonlyArray<string>, options: { readonly serve: Serve }): Effect.Effect<number> =>
  Effect.gen(function* () {
    const own = yield* Console.consoleWith(Effect.succeed)
    const groups = groupsFor((given) => Effect.withConsole(options.serve(given), own))
    const intent = yield* interpret(groups, argv.slice(2))
    if (intent.kind === "overview") return yield* Console.log(overview(description, groups))
    if (intent.kind === "version") return yield* Console.log(packageJson.version)
    if (intent.kind === "help") {
      const settings =
        intent.page.path[0] === "serve" ? `\n\nSETTINGS, with their defaults\n\n${describeSettings()}` : ""
      return yield* Console.log(render(intent.page) + settings)
    }
    const about = { name: "gateway", version: packageJson.version, executable: "gateway" }
    const args = [...argv.slice(0, 2), ...intent.args]
    yield* Effect.withConsole(Command.run(commandOf(groups), about)(args), consoleFor(own))
  }).pipe(
    Effect.mapError(toUsageError),
    (program) => runToExitCode(program, argv.includes("--json") ? "json" : "text"),
    Effect.provide(Layer.mergeAll(NodeContext.layer, CliConfig.layer({ isCaseSensitive: true, showBuiltIns: false })))
  )
