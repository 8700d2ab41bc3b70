import path from "node:path"
import { Command, Options } from "@effect/cli"
import { Effect, Redacted, Struct } from "effect"
import { Role } from "../domain/Organization.ts"
import { OrganizationScope } from "../domain/OrganizationScope.ts"
import { CommandFailed } from "../ExitCode.ts"
import { hasPublicUrl } from "../Settings.ts"
import { BlockList, isTooWide, parseRange, rangeForms } from "../services/access/BlockList.ts"
import * as Controls from "../services/admin/ControlOperations.ts"
import * as Operations from "../services/admin/OperatorOperations.ts"
import { linkHours, Operator, Operators } from "../services/admin/Operators.ts"
import { settingsOfRunning } from "./CliServices.ts"
import { change, command, make, operate } from "./CommandBuilders.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

const reference = Inputs.word("OPERATOR", "an operator's name or id")

/** Adds a remark if no gateway runs here: the settings' default address may then be wrong. */
const consoleLink = (secret: Redacted.Redacted) =>
  Effect.map(settingsOfRunning, ({ running, settings }) => ({
    link: Operations.consoleLink(settings.publicUrl, secret),
    remark:
      running === undefined && !hasPublicUrl(settings)
        ? `No running gateway was found on this machine. The link uses the address in the settings, ${settings.publicUrl}.`
        : ""
  }))

const role = Inputs.oneOf("role", Role.literals).pipe(
  Options.withDescription("read: view; write: view and change; owner: also manage operators and delete organizations")
)

const create = command(
  "create",
  `${Operations.create.summary}.`,
  {
    name: Inputs.word("NAME", "a unique name"),
    role,
    org: Inputs.optional(
      Inputs.text("org"),
      "create a member limited to this organization (id or name); requires role read or write"
    )
  },
  Effect.fnUntraced(function* ({ org, ...input }) {
    const { record, value } = yield* Operations.create.run({ ...input, organization: org })
    const signIn = value && (yield* consoleLink(value.link))
    const secrets = signIn && { link: signIn.link, token: Redacted.value(value.token) }
    const { id, ...rest } = record
    const remark = `The link opens the console once, within ${linkHours} hours. Use the token in scripts and to sign in again. Neither is shown again.`
    return Output.record({ id, ...secrets, ...rest }, [remark, signIn?.remark].filter(Boolean).join("\n"))
  })
)

const list = command(
  "list",
  "List operators.",
  {},
  Effect.fnUntraced(function* () {
    const { list } = yield* Operators
    return Output.list(yield* list(OrganizationScope.all), {
      columns: ["name", "role", "org_name", ...Object.keys(Struct.omit(Operator.fields, "name", "role", "org_name"))],
      none: "There are no operators. Create one: gateway operators create NAME --role owner"
    })
  })
)

const link = command(
  "link",
  `${Operations.link.summary}.`,
  { reference },
  Effect.fnUntraced(function* (input) {
    const { record, value } = yield* Operations.link.run(input.reference)
    const signIn = value && (yield* consoleLink(value.link))
    return Output.record({ id: record.id, ...(signIn && { link: signIn.link }), name: record.name }, signIn?.remark)
  })
)

const update = change("update", `${Operations.update.summary}.`, { reference, role }, ({ reference, role }) =>
  Operations.update.run(reference, { role })
)

const revoke = operate("revoke", Operations.revoke, reference)

export const open = make(
  "open",
  "Print the address of the running gateway's console.",
  {},
  Effect.fnUntraced(function* () {
    const { running, settings } = yield* settingsOfRunning
    if (running === undefined) {
      const message = `No gateway with the data directory ${path.resolve(settings.dataDir)} is running on this machine. Start it: gateway serve`
      return yield* new CommandFailed({ message })
    }
    const url = Operations.consoleUrl(settings.publicUrl)
    return {
      document: { url },
      text: `${url}\n\nSign in with an operator's token. For a link that signs you in, run gateway operators link NAME.`
    }
  })
)

export const operators = Inputs.group("operators", "Manage access to the console and the admin API.").pipe(
  Command.withSubcommands([create, list, link, update, revoke])
)

const range = Inputs.argument("CIDR", rangeForms, parseRange)

const add = change(
  "add",
  `${Controls.block.summary}.`,
  {
    range,
    force: Inputs.flag("force", "allow a range that contains this machine or most of the Internet")
  },
  Effect.fnUntraced(function* ({ force, range }) {
    if (!force && isTooWide(range)) {
      const message = `${range} contains addresses of this machine or is very wide. Add --force to block it.`
      return yield* new CommandFailed({ message })
    }
    return yield* Controls.block.run(range)
  })
)

const remove = operate("remove", Controls.unblock, range)

const listBlocked = command(
  "list",
  "List blocked addresses.",
  {},
  Effect.fnUntraced(function* () {
    const { list } = yield* BlockList
    return Output.list(yield* list, {
      columns: ["cidr", "created_at"],
      none: "No address is blocked."
    })
  })
)

export const blocklist = Inputs.group("blocklist", "Block client addresses.").pipe(
  Command.withSubcommands([add, remove, listBlocked])
)
