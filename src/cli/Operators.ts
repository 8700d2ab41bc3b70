import { Command, Options } from "@effect/cli"
import { Effect, Redacted } from "effect"
import { Role } from "../domain/Operator.ts"
import { hasPublicUrl } from "../Settings.ts"
import { Operator } from "../services/admin/Operator.ts"
import * as Operations from "../services/admin/OperatorOperations.ts"
import { linkHours, Operators } from "../services/admin/Operators.ts"
import { command, operate } from "./Commands.ts"
import { settingsOfRunning } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

const reference = Inputs.word("OPERATOR", "an operator's name or id")

/** Adds a remark if no running gateway confirms the address in the settings. */
const consoleLink = (secret: Redacted.Redacted) =>
  Effect.map(settingsOfRunning, ({ running, settings }) => ({
    link: Operations.consoleLink(settings.publicUrl, secret),
    remark:
      running === undefined && !hasPublicUrl(settings)
        ? `No running gateway was found here. The link uses the address in the settings, ${settings.publicUrl}.`
        : ""
  }))

const create = command(
  "create",
  `${Operations.create.summary}.`,
  {
    name: Inputs.word("NAME", "a name that no other operator has"),
    role: Inputs.oneOf("role", Role.literals).pipe(
      Options.withDescription("read looks; write also changes; owner also manages operators and deletes organizations")
    ),
    org: Inputs.optional(
      Inputs.text("org"),
      "an organization's id or name, whose member it is: it sees nothing else, and its role is read or write"
    )
  },
  Effect.fnUntraced(function* ({ org, ...given }) {
    const { record, value } = yield* Operations.create.run({ ...given, organization: org })
    const opened = value && (yield* consoleLink(value.link))
    const secrets = opened && { link: opened.link, token: Redacted.value(value.token) }
    const { id, ...rest } = record
    const remark = `The link opens the console once, within ${linkHours} hours; the token is for scripts, and to sign in again. Neither is shown again.`
    return Output.record({ id, ...secrets, ...rest }, [remark, opened?.remark].filter(Boolean).join("\n"))
  })
)

const list = command(
  "list",
  "List the operators.",
  {},
  Effect.fnUntraced(function* () {
    const { list } = yield* Operators
    return Output.list(yield* list, {
      columns: Object.keys(Operator.fields),
      none: "There are no operators: gateway operators create NAME --role owner makes one."
    })
  })
)

const link = command(
  "link",
  `${Operations.link.summary}.`,
  { reference },
  Effect.fnUntraced(function* (given) {
    const { record, value } = yield* Operations.link.run(given.reference)
    const opened = value && (yield* consoleLink(value.link))
    return Output.record({ id: record.id, ...(opened && { link: opened.link }), name: record.name }, opened?.remark)
  })
)

const revoke = operate("revoke", Operations.revoke, reference)

export const operators = Inputs.group("operators", "Who may use the console and the admin API.").pipe(
  Command.withSubcommands([create, list, link, revoke])
)
