import { stripVTControlCharacters } from "node:util"
import { CliConfig, Command, HelpDoc, ValidationError } from "@effect/cli"
import { NodeContext } from "@effect/platform-node"
import { Console, Effect, Layer } from "effect"
import packageJson from "../package.json" with { type: "json" }
import { blocklist } from "./cli/Blocklist.ts"
import { catalog } from "./cli/Catalog.ts"
import { CommandFailed } from "./cli/CommandFailed.ts"
import { credits } from "./cli/Credits.ts"
import { backup, migrate, restore } from "./cli/Database.ts"
import { doctor } from "./cli/Doctor.ts"
import { render, valueOf } from "./cli/Help.ts"
import * as Inputs from "./cli/Inputs.ts"
import { keys } from "./cli/Keys.ts"
import { holds, ledger, statement } from "./cli/Ledger.ts"
import { operators } from "./cli/Operators.ts"
import { orgs } from "./cli/Orgs.ts"
import { payments } from "./cli/Payments.ts"
import { reconcile } from "./cli/Reconcile.ts"
import { requests, usage } from "./cli/Requests.ts"
import { providers, routes } from "./cli/Routes.ts"
import { media, videos } from "./cli/Videos.ts"
import { webhooks } from "./cli/Webhooks.ts"
import { exitCode, explain, inOneLine } from "./ExitCode.ts"
import { describeSettings } from "./settings/Variables.ts"

export type Serve = (options: {
  readonly json: boolean
  /** Overrides `WORKERS`. */
  readonly workers: string | undefined
}) => Effect.Effect<void, { readonly message: string }>

const workers = Inputs.optional(
  Inputs.text("workers"),
  "processes that answer at the one address, or auto for one per core; default: the setting WORKERS"
)

const groupsFor = (start: Serve) => {
  const serve = Command.make("serve", { json: Inputs.json, workers }, start).pipe(
    Command.withDescription("Run the gateway.")
  )
  return [
    { title: "RUN", commands: [serve, doctor, migrate, backup, restore, operators] },
    { title: "CUSTOMERS", commands: [orgs, keys, credits, payments, ledger, statement, holds, webhooks, blocklist] },
    { title: "MODELS AND TRAFFIC", commands: [catalog, providers, routes, requests, usage, reconcile, videos, media] }
  ] as const
}

const description = "One gateway for all models. COMMAND --help tells more; --json prints JSON."

const explainFor =
  (args: ReadonlyArray<string>) =>
  (error: unknown): string => {
    if (!ValidationError.isValidationError(error))
      return error instanceof CommandFailed ? error.message : explain(error)
    const text = inOneLine(HelpDoc.toAnsiText(error.error))
    if (!ValidationError.isCommandMismatch(error)) return text
    const words = args.filter((arg) => !arg.startsWith("-")).slice(0, 2)
    const unknown = words.length === 0 ? `option ${args.join(" ")}` : `command gateway ${words.join(" ")}`
    return `There is no ${unknown}; see gateway --help.`
  }

const asksForHelp = (args: ReadonlyArray<string>) => args.length === 0 || args.includes("--help") || args.includes("-h")

const wordsOf = (args: ReadonlyArray<string>) =>
  args.slice(
    0,
    args.findIndex((arg) => arg.startsWith("-"))
  )

/** Usage errors are printed by `exitCode` alone. */
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
    const args = argv.slice(2)
    if (asksForHelp(args)) {
      const help = render(description, groups, wordsOf(args))
      const settings = args[0] === "serve" ? `\n\nSETTINGS, with their defaults\n\n${describeSettings()}` : ""
      if (help !== undefined) return yield* Console.log(help + settings)
    }
    const last = args.at(-1) ?? ""
    const accepted = last.startsWith("--") ? valueOf(groups, wordsOf(args), last) : undefined
    if (accepted !== undefined) return yield* new CommandFailed({ message: `${last} needs a value, ${accepted}.` })
    const [running, customers, traffic] = groups
    const command = Command.make("gateway").pipe(
      Command.withDescription(description),
      Command.withSubcommands([...running.commands, ...customers.commands, ...traffic.commands])
    )
    const about = { name: "gateway", version: packageJson.version, executable: "gateway" }
    yield* Effect.withConsole(Command.run(command, about)(argv), consoleFor(own))
  }).pipe(
    (program) => exitCode(program, explainFor(argv.slice(2))),
    Effect.provide(Layer.mergeAll(NodeContext.layer, CliConfig.layer({ isCaseSensitive: true, showBuiltIns: false })))
  )
