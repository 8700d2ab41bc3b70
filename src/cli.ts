import { CliConfig, Command, HelpDoc, ValidationError } from "@effect/cli"
import { NodeContext } from "@effect/platform-node"
import { Console, Effect, Layer } from "effect"
import packageJson from "../package.json" with { type: "json" }
import { backup, restore } from "./cli/Backup.ts"
import { blocklist } from "./cli/Blocklist.ts"
import { catalog } from "./cli/Catalog.ts"
import { CommandFailed } from "./cli/CommandFailed.ts"
import { credits } from "./cli/Credits.ts"
import { doctor } from "./cli/Doctor.ts"
import { render } from "./cli/Help.ts"
import { holds } from "./cli/Holds.ts"
import * as Inputs from "./cli/Inputs.ts"
import { keys } from "./cli/Keys.ts"
import { ledger } from "./cli/Ledger.ts"
import { media } from "./cli/Media.ts"
import { migrate } from "./cli/Migrate.ts"
import { operators } from "./cli/Operators.ts"
import { orgs } from "./cli/Orgs.ts"
import { payments } from "./cli/Payments.ts"
import { providers } from "./cli/Providers.ts"
import { reconcile } from "./cli/Reconcile.ts"
import { requests } from "./cli/Requests.ts"
import { routes } from "./cli/Routes.ts"
import { statement } from "./cli/Statement.ts"
import { usage } from "./cli/Usage.ts"
import { videos } from "./cli/Videos.ts"
import { webhooks } from "./cli/Webhooks.ts"
import { exitCode, explain, inOneLine, withoutColours } from "./ExitCode.ts"
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

const isMismatch = (error: unknown) =>
  ValidationError.isValidationError(error) && ValidationError.isCommandMismatch(error)

const explainFor =
  (args: ReadonlyArray<string>) =>
  (error: unknown): string => {
    if (isMismatch(error)) {
      const words = args.filter((arg) => !arg.startsWith("-")).slice(0, 2)
      const unknown = words.length === 0 ? `option ${args.join(" ")}` : `command gateway ${words.join(" ")}`
      return `There is no ${unknown}; see gateway --help.`
    }
    if (ValidationError.isValidationError(error)) return inOneLine(HelpDoc.toAnsiText(error.error))
    return error instanceof CommandFailed ? error.message : explain(error)
  }

const isAbout =
  (option: string) =>
  (error: unknown): boolean =>
    option.startsWith("--") &&
    ValidationError.isValidationError(error) &&
    inOneLine(HelpDoc.toAnsiText(error.error)).endsWith(`: '${option}'`)

const asksForHelp = (args: ReadonlyArray<string>) => args.length === 0 || args.includes("--help") || args.includes("-h")

const wordsOf = (args: ReadonlyArray<string>) =>
  args.slice(
    0,
    args.findIndex((arg) => arg.startsWith("-"))
  )

/** Usage errors are printed by `exitCode` alone. */
const consoleFor = (own: Console.Console): Console.Console => ({
  ...own,
  log: (...texts) => own.log(...texts.map((text) => (process.stdout.isTTY ? text : withoutColours(String(text))))),
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
    const [running, customers, traffic] = groups
    const command = Command.make("gateway").pipe(
      Command.withDescription(description),
      Command.withSubcommands([...running.commands, ...customers.commands, ...traffic.commands])
    )
    const about = { name: "gateway", version: packageJson.version, executable: "gateway" }
    const parse = Command.run(
      Command.transformHandler(command, () => Effect.void),
      about
    )
    // What an option at the end, without its value, says of an empty one tells what it accepts.
    const last = args.at(-1) ?? ""
    const run = Effect.catchIf(Command.run(command, about)(argv), isAbout(last), (error) =>
      Effect.matchEffect(parse([...argv, ""]), {
        onFailure: (other) => Effect.fail(explainFor(args)(other).startsWith(`${last} `) ? other : error),
        onSuccess: () => new CommandFailed({ message: `${last} needs a value.` })
      })
    )
    yield* Effect.withConsole(run, consoleFor(own))
  }).pipe(
    (program) => exitCode(program, explainFor(argv.slice(2))),
    Effect.provide(Layer.mergeAll(NodeContext.layer, CliConfig.layer({ isCaseSensitive: true, showBuiltIns: false })))
  )
