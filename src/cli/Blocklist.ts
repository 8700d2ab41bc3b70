import { Command, Options } from "@effect/cli"
import { Effect } from "effect"
import { isSweeping, parseRange } from "../services/access/AddressRange.ts"
import { type BlockedRange, BlockList } from "../services/access/BlockList.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { operator } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
import { presentList, presentRecord } from "./Output.ts"

const record = ({ createdAt, range }: BlockedRange) => ({ id: range, cidr: range, created_at: createdAt })

const rangeArgument = Inputs.argument(
  "CIDR",
  "an address or a range such as 203.0.113.0/24 or 2001:db8::/32",
  parseRange
)

const add = Command.make(
  "add",
  {
    range: rangeArgument,
    force: Options.boolean("force").pipe(Options.withDescription("block even this machine, or most of the Internet")),
    json: Inputs.json
  },
  Effect.fnUntraced(function* ({ force, json, range }) {
    if (!force && isSweeping(range)) {
      const message = `${range} holds this machine's own addresses or is very wide; --force blocks it all the same.`
      return yield* new CommandFailed({ message })
    }
    const added = yield* Effect.flatMap(BlockList, (blockList) => blockList.add(range))
    return yield* presentRecord(json, record(added))
  })
).pipe(Command.withDescription("Refuse an address or a range."), Command.provide(operator))

const remove = Command.make(
  "remove",
  { range: rangeArgument, json: Inputs.json },
  Effect.fnUntraced(function* ({ json, range }) {
    const removed = yield* Effect.flatMap(BlockList, (blockList) => blockList.remove(range))
    yield* presentRecord(json, record(removed))
  })
).pipe(Command.withDescription("Let an address or a range in again."), Command.provide(operator))

const list = Command.make(
  "list",
  { json: Inputs.json },
  Effect.fnUntraced(function* ({ json }) {
    const rows = yield* Effect.flatMap(BlockList, (blockList) => blockList.list)
    yield* presentList(json, rows.map(record), { columns: ["cidr", "created_at"], none: "Nothing is blocked." })
  })
).pipe(Command.withDescription("List what is refused."), Command.provide(operator))

export const blocklist = Inputs.group("blocklist", "Addresses that are refused before anything else.").pipe(
  Command.withSubcommands([add, remove, list])
)
