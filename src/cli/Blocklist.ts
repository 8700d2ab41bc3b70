import { Command } from "@effect/cli"
import { Effect } from "effect"
import { isSweeping, parseRange, rangeForms } from "../services/access/AddressRange.ts"
import { BlockList } from "../services/access/BlockList.ts"
import * as Operations from "../services/admin/BlockListOperations.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { change, command, operate } from "./Commands.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

const range = Inputs.argument("CIDR", rangeForms, parseRange)

const add = change(
  "add",
  `${Operations.add.summary}.`,
  {
    range,
    force: Inputs.flag("force", "block even this machine, or most of the Internet")
  },
  Effect.fnUntraced(function* ({ force, range }) {
    if (!force && isSweeping(range)) {
      const message = `${range} holds this machine's own addresses or is very wide; --force blocks it all the same.`
      return yield* new CommandFailed({ message })
    }
    return yield* Operations.add.run(range)
  })
)

const remove = operate("remove", Operations.remove, range)

const list = command(
  "list",
  "List what is refused.",
  {},
  Effect.fnUntraced(function* () {
    const { list } = yield* BlockList
    return Output.list(yield* list, {
      columns: ["cidr", "created_at"],
      none: "Nothing is blocked."
    })
  })
)

export const blocklist = Inputs.group("blocklist", "Addresses that are refused before anything else.").pipe(
  Command.withSubcommands([add, remove, list])
)
